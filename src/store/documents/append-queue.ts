import { TroupeError } from '../../base/errors.ts';
import type { AppendOutcome, EventRow, NewEventRow } from '../driver.ts';
import { chainRows } from '../event-row.ts';
import type { EventDocuments, LogEnd, LogKey } from './documents.ts';

/**
 * Appends to logs without locks, by two unique keys: (log, id) and (log, seq).
 *
 * Owns: the known ends of logs, and the order of this process's appends.
 *  A1  seq + 1 is inserted only after seq was seen to exist, and an insert stops at the first taken key. So a log has no
 *      holes, and no reader waits for a missing seq.
 *  A2  After a refused insert the id is looked up to find out which key was taken; the error text is never used. If the id
 *      is stored, the event is a duplicate. If not, another process took the seq, and the end of the log is read again.
 *  A3  Per log one append runs at a time; appends that arrive meanwhile form the next batch, in order. So appends of
 *      different processes may clash, those of one process never do.
 *  A4  A crash of the server may undo events that this process has seen but was never acknowledged. So known ends are
 *      dropped after any failure and when the connection is lost.
 *  A5  A removed log begins again at 1, while other processes may still know its old end. So a known end is trusted for
 *      `TRUST_MS`, and a removal checks again after `LOOK_AGAIN_MS`, which is longer: an insert that ended while the end was
 *      trusted is found by that check. A process whose insert ended later reads the inserted events and the one before them
 *      again. If one of them is gone, by a removal or by a process that repaired a hole below it, the events above the hole
 *      are removed, with those that others appended to them, and the end of the log is read again.
 *  A6  A known end includes the chain value of its event, which new events continue. When an insert ends later than
 *      `TRUST_MS`, another event may have the seq of the known end, because the log was removed and has grown again. The
 *      first inserted event then loses its chain value, and the chain begins again with the event after it (S7).
 */
export interface AppendStats {
  /** Calls of `append`. */
  appends: number;
  /** Rows of all calls. */
  rows: number;
  /** Inserts sent. */
  inserts: number;
  /** Reads of the end of a log. */
  lasts: number;
  /** Rows that were already stored. */
  duplicates: number;
  /** Inserts whose seq was taken or whose predecessor was gone. */
  clashes: number;
  /** Most clashes in a row of one append. */
  mostClashes: number;
}

export interface AppendQueueOptions {
  /** 0 <= n < 1. */
  random: () => number;
  /** Resolves after this many ms. */
  sleep: (ms: number) => Promise<unknown>;
  /** A clock that never goes back, ms. Without it known ends are always trusted, and every insert is checked afterwards. */
  monotonic?: () => number;
}

interface Stored extends LogEnd {
  hash: string;
}

interface Head extends LogEnd {
  /** The event still existed at this time, ms. */
  at: number;
}

/** Clashes in a row before an append fails. 32 processes on one log reached a fraction of it. */
const MAX_CLASHES = 100;
const FIRST_BACK_OFF_MS = 4;
const MAX_BACK_OFF_MS = 250;
/** How long a known end is trusted, and the longer time after which a removal checks again (A5). */
const TRUST_MS = 500;
const LOOK_AGAIN_MS = 750;
const MAX_ROWS = 256;
const MAX_HEADS = 20_000;

interface Waiting {
  rows: readonly NewEventRow[];
  resolve: (outcomes: AppendOutcome[]) => void;
  reject: (error: unknown) => void;
}

export function createAppendQueue(events: EventDocuments, options: AppendQueueOptions) {
  const { sleep, monotonic } = options;
  const heads = createHeads(events, options);
  const queues = new Map<string, Waiting[]>();
  const stats: AppendStats = {
    appends: 0,
    rows: 0,
    inserts: 0,
    lasts: 0,
    duplicates: 0,
    clashes: 0,
    mostClashes: 0,
  };

  async function drain(log: LogKey, queue: Waiting[]): Promise<void> {
    while (queue.length > 0) {
      const batch = takeBatch(queue);
      try {
        const outcomes = await appendRows(
          { events, heads, stats, options },
          log,
          batch.flatMap(({ rows }) => rows),
        );
        let from = 0;
        for (const { rows, resolve } of batch) resolve(outcomes.slice(from, (from += rows.length)));
      } catch (error) {
        heads.forget();
        for (const { reject } of batch) reject(error);
      }
    }
    queues.delete(nameOf(log));
  }

  return {
    stats,
    now: heads.now,
    known: heads.known,
    seen: heads.seen,
    readLast: heads.readLast,
    /** Waits until no process trusts an end that it saw before this call. */
    untilDistrusted: async () => void (monotonic && (await sleep(LOOK_AGAIN_MS))),
    forget: heads.forget,
    forgetLog: heads.forgetLog,

    append(rows: readonly NewEventRow[]): Promise<AppendOutcome[]> {
      const [first] = rows;
      if (!first) return Promise.resolve([]);
      const { tenant, conversation } = first;
      const log = { tenant, conversation };
      stats.appends += 1;
      stats.rows += rows.length;
      return new Promise((resolve, reject) => {
        const waiting = { rows, resolve, reject };
        const running = queues.get(nameOf(log));
        if (running) return void running.push(waiting);
        const queue = [waiting];
        queues.set(nameOf(log), queue);
        void drain(log, queue);
      });
    },
  };
}

function createHeads(events: EventDocuments, { monotonic }: AppendQueueOptions) {
  const heads = new Map<string, Head>();
  const now = () => monotonic?.() ?? 0;
  const isPast = (at: number, otherwise: boolean) => (monotonic ? now() - at >= TRUST_MS : otherwise);

  function seen(log: LogKey, { seq, chain }: LogEnd, at: number): void {
    const name = nameOf(log);
    const known = heads.get(name);
    if (!Number.isSafeInteger(seq) || seq < (known?.seq ?? 1)) return;
    if (seq === known?.seq && at < known.at) return;
    if (heads.size >= MAX_HEADS && !known) heads.clear();
    heads.set(name, { seq, chain, at });
  }

  async function readLast(log: LogKey): Promise<LogEnd> {
    const name = nameOf(log);
    const known = heads.get(name);
    const at = now();
    const last = await events.last(log, known?.seq);
    // If the log now ends earlier, it was removed and may have begun again.
    if (known && last.seq < known.seq && heads.get(name) === known) heads.delete(name);
    seen(log, last, at);
    return last;
  }

  return {
    now,
    isPast,
    seen,
    readLast,
    known: (log: LogKey) => heads.get(nameOf(log)),
    forget: () => heads.clear(),
    forgetLog: (log: LogKey) => void heads.delete(nameOf(log)),
  };
}

interface Appending {
  events: EventDocuments;
  heads: ReturnType<typeof createHeads>;
  stats: AppendStats;
  options: AppendQueueOptions;
}

async function appendRows(
  appending: Appending,
  log: LogKey,
  rows: readonly NewEventRow[],
): Promise<AppendOutcome[]> {
  const { events, heads, stats } = appending;
  const { now, readLast } = heads;
  const progress = createAppendProgress(appending, log);
  const { outcomes, stored, settle, clashed } = progress;

  while (outcomes.length < rows.length) {
    const row = rows[outcomes.length]!;
    const twin = stored.get(row.id);
    if (twin) {
      settle(row, 'duplicate', twin, 0);
      continue;
    }
    const trusted = progress.trustedHead();
    const begun = now();
    const head = trusted ?? { ...(await readLast(log)), at: begun };
    const sent = now();
    const group = chainRows(rowsUpToRepeat(rows, outcomes.length, stored), head);
    stats.inserts += 1;
    const inserted = await events.insert(group);
    const ours = group.slice(0, inserted);
    const kept = inserted === 0 ? [] : await keepRows(appending, log, ours, head);
    for (const each of kept) settle(each, 'appended', each, sent);
    if (kept.length < inserted) {
      clashed(ours[kept.length] ?? row);
      continue;
    }
    const refused = group[inserted];
    if (refused) await progress.resolveTaken(refused, trusted !== undefined, sent);
  }
  return outcomes;
}

/** The outcomes of one batch of rows, and its clashes in a row so far. */
function createAppendProgress({ events, heads, stats, options }: Appending, log: LogKey) {
  const outcomes: AppendOutcome[] = [];
  const stored = new Map<string, Stored>();
  let clashes = 0;
  let isOld = false;

  /** Undefined after a clash, and if the known end is too old. Then the end of the log must be read. */
  function trustedHead(): Head | undefined {
    const known = isOld ? undefined : heads.known(log);
    const trusted = known && !heads.isPast(known.at, false) ? known : undefined;
    if (!trusted) stats.lasts += 1;
    isOld = false;
    return trusted;
  }

  function settle(
    { id }: NewEventRow,
    kind: AppendOutcome['kind'],
    { seq, chain, hash }: Stored,
    at: number,
  ): void {
    outcomes.push(kind === 'appended' ? { kind, seq } : { kind, seq, hash });
    if (kind === 'duplicate') stats.duplicates += 1;
    stored.set(id, { seq, chain, hash });
    heads.seen(log, { seq, chain }, at);
    clashes = 0;
  }

  function clashed({ id }: NewEventRow): void {
    isOld = true;
    clashes += 1;
    stats.clashes += 1;
    stats.mostClashes = Math.max(stats.mostClashes, clashes);
    if (clashes > MAX_CLASHES) throw crowded(log, id);
  }

  /** Finds out which key of the row was taken (A2). Backs off only if the end was just read, because a known end may be old. */
  async function resolveTaken(row: NewEventRow, wasKnown: boolean, at: number): Promise<void> {
    const twin = await events.find(log, row.id);
    if (twin) return settle(row, 'duplicate', twin, at);
    clashed(row);
    if (wasKnown) return;
    await options.sleep(options.random() * Math.min(FIRST_BACK_OFF_MS * 2 ** (clashes - 1), MAX_BACK_OFF_MS));
  }

  return { outcomes, stored, trustedHead, settle, clashed, resolveTaken };
}

/** Which of the rows inserted after `head` may stay (A5, A6). */
async function keepRows(
  { events, heads }: Appending,
  log: LogKey,
  rows: readonly EventRow[],
  { seq: head, chain, at }: Head,
): Promise<readonly EventRow[]> {
  if (!heads.isPast(at, true) || (head === 0 && rows.length === 1)) return rows;
  const found = await events.keys(log, { after: Math.max(0, head - 1), upTo: head + rows.length });
  const places = new Map(found.map((place) => [place.seq, place]));
  const isHeadGone = head > 0 && !places.has(head);
  const lost = isHeadGone ? 0 : rows.findIndex(({ id, seq }) => places.get(seq)?.id !== id);
  const kept = lost < 0 ? rows : rows.slice(0, lost);
  if (lost >= 0) {
    heads.forgetLog(log);
    // If an event of another process has this seq, there is no hole.
    if (isHeadGone || !places.has(head + 1 + lost))
      while ((await events.removeNewest(log, { after: head + lost, limit: MAX_ROWS })) === MAX_ROWS);
  }
  const [first, ...others] = kept;
  if (!first || head === 0 || places.get(head)?.chain === chain) return kept;
  await events.unchain(log, first.id);
  return [{ ...first, chain: null }, ...others];
}

function nameOf({ tenant, conversation }: LogKey): string {
  return `${tenant}/${conversation}`;
}

/** The next rows, up to the first whose id has occurred before. */
function rowsUpToRepeat(
  rows: readonly NewEventRow[],
  from: number,
  stored: ReadonlyMap<string, unknown>,
): NewEventRow[] {
  const ids = new Set<string>();
  const group: NewEventRow[] = [];
  for (const row of rows.slice(from, from + MAX_ROWS)) {
    if (ids.has(row.id) || stored.has(row.id)) break;
    ids.add(row.id);
    group.push(row);
  }
  return group;
}

/** Takes waiting calls, at least one, that together have at most `MAX_ROWS` rows. */
function takeBatch(queue: Waiting[]): Waiting[] {
  let count = 1;
  let rows = queue[0]!.rows.length;
  for (const next of queue.slice(1)) {
    rows += next.rows.length;
    if (rows > MAX_ROWS) break;
    count += 1;
  }
  return queue.splice(0, count);
}

function crowded({ conversation }: LogKey, id: string): TroupeError {
  const message = `event ${id} clashed ${MAX_CLASHES} times in conversation ${conversation}: too many processes write to it at once, try again`;
  return new TroupeError('store_unavailable', message, { conversation, id });
}
