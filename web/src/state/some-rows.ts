import type { Row } from '../../../src/projection/model.ts';
import { api, type RowsQuery } from './api.ts';
import { foldNoise, type Line } from './fold-noise.ts';
import { changes, messageOf, type RowSource } from './row-source.ts';

const PAGE_ROWS = 300;
/** Maximum of loaded rows. Above it the far end is dropped, and fetched again on demand. */
const MAX_ROWS = 6_000;
/** Distance from an edge, in rows, at which more are requested. */
const NEAR_EDGE = 60;
const SETTLE_MS = 80;

interface SomeRowsOptions {
  query: RowsQuery;
  /** Last seq of the list; null: the list follows the log. */
  end: number | null;
  isFolded: boolean;
}

/** Matching events, from the newest backwards. Their number is unknown until all are loaded. */
export function someRows(conversation: string, { query, end, isFolded }: SomeRowsOptions): RowSource {
  const { version, problem, changed } = changes();
  const isFiltered = Object.values(query).some((value) => value !== undefined && value !== '');
  const open = new Set<number>();
  let rows: Row[] = [];
  let lines: readonly Line[] = [];
  let [hasOlder, hasNewer] = [true, false];
  let isAsking = false;
  /** Events arrived during the request; the answer may or may not include them. */
  let isStale = false;
  let isClosed = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const show = () => {
    lines = isFolded ? foldNoise(rows, (seq) => open.has(seq)) : rows;
    changed();
  };
  const ask = async (
    range: Pick<RowsQuery, 'before' | 'after'>,
    take: (page: Row[], more: boolean) => void,
  ) => {
    if (isAsking || isClosed) return;
    isAsking = true;
    try {
      const page = await api.rows(conversation, { ...query, ...range, limit: PAGE_ROWS });
      problem.value = null;
      if (isClosed) return;
      take(
        page.rows.filter(({ seq }) => end === null || seq <= end),
        page.more,
      );
      show();
    } catch (error) {
      problem.value = messageOf(error);
    } finally {
      isAsking = false;
    }
    if (isStale) {
      isStale = false;
      void askNewer();
    }
  };
  const askOlder = (from = end === null ? undefined : end + 1) =>
    ask({ before: rows[0]?.seq ?? from }, (page, more) => {
      rows = [...page, ...rows];
      hasOlder = more && page.length > 0;
      if (rows.length > MAX_ROWS) {
        rows = rows.slice(0, MAX_ROWS);
        hasNewer = true;
      }
    });
  const askNewer = () =>
    ask({ after: rows.at(-1)?.seq ?? 0 }, (page, more) => {
      const last = rows.at(-1)?.seq ?? 0;
      rows = trimmed([...rows, ...page.filter(({ seq }) => seq > last)]);
      hasNewer = more;
    });
  const trimmed = (all: Row[]) => {
    if (all.length <= MAX_ROWS) return all;
    hasOlder = true;
    return all.slice(-MAX_ROWS / 2);
  };
  void askOlder();
  return {
    version,
    problem,
    count: () => lines.length,
    lineAt: (index) => lines[index] ?? null,
    indexOf: (seq) =>
      lines.findLastIndex((line) => line.seq <= seq && ('count' in line ? line.last : line.seq) >= seq),
    need(first, last) {
      if (first < NEAR_EDGE && hasOlder) void askOlder();
      else if (last > lines.length - NEAR_EDGE && hasNewer) void askNewer();
    },
    arrived(fresh, head) {
      if (end !== null || hasNewer) return;
      if (isAsking) {
        isStale = true;
        return;
      }
      const last = rows.at(-1)?.seq ?? 0;
      if (!isFiltered && fresh[0]?.seq === last + 1 && fresh.at(-1)?.seq === head) {
        rows = trimmed([...rows, ...fresh]);
        show();
        return;
      }
      // The server decides what matches.
      clearTimeout(timer);
      timer = setTimeout(() => void askNewer(), SETTLE_MS);
    },
    seek(seq) {
      if (seq === null && !hasNewer) return;
      rows = [];
      hasOlder = true;
      hasNewer = seq !== null;
      void askOlder(seq === null ? undefined : seq + PAGE_ROWS / 2);
    },
    unfold(seq) {
      open.add(seq);
      show();
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}
