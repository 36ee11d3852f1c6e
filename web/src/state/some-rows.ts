import type { Row } from '../../../src/library/projection/model.ts';
import { api, type RowsQuery } from './api.ts';
import { foldNoise, type Line } from './fold-noise.ts';
import { messageOf } from '../shared/format.ts';
import { changes, type RowSource } from './row-source.ts';

const PAGE_ROWS = 300;
/** Most loaded rows. Above it the far end is dropped, and fetched again on demand. */
const MAX_ROWS = 6_000;
/** Distance from an edge, in rows, at which more are requested. */
const NEAR_EDGE = 60;
const SETTLE_MS = 80;

interface SomeRowsOptions {
  query: RowsQuery;
  /** Last seq of the list. Null: the list follows the log. */
  end: number | null;
  isFolded: boolean;
}

/** Matching events, from the newest backwards. Their number is unknown until all are loaded. */
export function someRows(conversation: string, options: SomeRowsOptions): RowSource {
  const source = new SomeRows(conversation, options);
  void source.askOlder();
  return source;
}

class SomeRows implements RowSource {
  readonly version: RowSource['version'];
  readonly problem: RowSource['problem'];
  readonly #changed: () => void;
  readonly #conversation: string;
  readonly #options: SomeRowsOptions;
  readonly #isFiltered: boolean;
  readonly #open = new Set<number>();
  #rows: Row[] = [];
  #lines: readonly Line[] = [];
  #hasOlder = true;
  #hasNewer = false;
  #isAsking = false;
  /** Events arrived during the request, so the answer may or may not include them. */
  #isStale = false;
  #isClosed = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(conversation: string, options: SomeRowsOptions) {
    ({ version: this.version, problem: this.problem, changed: this.#changed } = changes());
    this.#conversation = conversation;
    this.#options = options;
    this.#isFiltered = Object.values(options.query).some((value) => value !== undefined && value !== '');
  }

  count(): number {
    return this.#lines.length;
  }

  lineAt(index: number): Line | null {
    return this.#lines[index] ?? null;
  }

  indexOf(seq: number): number {
    return this.#lines.findLastIndex(
      (line) => line.seq <= seq && ('count' in line ? line.last : line.seq) >= seq,
    );
  }

  need(first: number, end: number): void {
    if (first < NEAR_EDGE && this.#hasOlder) void this.askOlder();
    else if (end > this.#lines.length - NEAR_EDGE && this.#hasNewer) void this.#askNewer();
  }

  arrived(fresh: readonly Row[], head: number): void {
    if (this.#options.end !== null || this.#hasNewer) return;
    if (this.#isAsking) {
      this.#isStale = true;
      return;
    }
    const last = this.#rows.at(-1)?.seq ?? 0;
    if (!this.#isFiltered && fresh[0]?.seq === last + 1 && fresh.at(-1)?.seq === head) {
      this.#rows = this.#trimmed([...this.#rows, ...fresh]);
      this.#show();
      return;
    }
    // The server decides which events match.
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#askNewer(), SETTLE_MS);
  }

  seek(seq: number | null): void {
    if (seq === null && !this.#hasNewer) return;
    this.#rows = [];
    this.#hasOlder = true;
    this.#hasNewer = seq !== null;
    void this.askOlder(seq === null ? undefined : seq + PAGE_ROWS / 2);
  }

  unfold(seq: number): void {
    this.#open.add(seq);
    this.#show();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  askOlder(from = this.#options.end === null ? undefined : this.#options.end + 1): Promise<void> {
    return this.#ask({ before: this.#rows[0]?.seq ?? from }, (page, more) => {
      this.#rows = [...page, ...this.#rows];
      this.#hasOlder = more && page.length > 0;
      if (this.#rows.length > MAX_ROWS) {
        this.#rows = this.#rows.slice(0, MAX_ROWS);
        this.#hasNewer = true;
      }
    });
  }

  #askNewer(): Promise<void> {
    return this.#ask({ after: this.#rows.at(-1)?.seq ?? 0 }, (page, more) => {
      const last = this.#rows.at(-1)?.seq ?? 0;
      this.#rows = this.#trimmed([...this.#rows, ...page.filter(({ seq }) => seq > last)]);
      this.#hasNewer = more;
    });
  }

  async #ask(
    range: Pick<RowsQuery, 'before' | 'after'>,
    take: (page: Row[], more: boolean) => void,
  ): Promise<void> {
    if (this.#isAsking || this.#isClosed) return;
    this.#isAsking = true;
    const { query, end } = this.#options;
    try {
      const page = await api.rows(this.#conversation, { ...query, ...range, limit: PAGE_ROWS });
      this.problem.value = null;
      if (this.#isClosed) return;
      take(
        page.rows.filter(({ seq }) => end === null || seq <= end),
        page.more,
      );
      this.#show();
    } catch (error) {
      this.problem.value = messageOf(error);
    } finally {
      this.#isAsking = false;
    }
    if (this.#isStale) {
      this.#isStale = false;
      void this.#askNewer();
    }
  }

  #show(): void {
    this.#lines = this.#options.isFolded ? foldNoise(this.#rows, (seq) => this.#open.has(seq)) : this.#rows;
    this.#changed();
  }

  #trimmed(all: Row[]): Row[] {
    if (all.length <= MAX_ROWS) return all;
    this.#hasOlder = true;
    return all.slice(-MAX_ROWS / 2);
  }
}
