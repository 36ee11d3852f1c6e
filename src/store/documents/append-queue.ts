import { TroupeError } from '../../errors.ts';
import type { AppendOutcome, EventRow, NewEventRow } from '../driver.ts';
import type { EventDocuments, LogKey } from './documents.ts';

/**
 * Appends to logs of which nothing is guarded but that (log, id) and (log, seq) are unique.
 *
 * Owns: what this process knows of the ends of logs, and the order of its own appends.
 *  A1  seq + 1 is inserted only after seq was seen to exist, and an insert stops at the first key that is taken: a log
 *      has no holes, and nobody waits for a number that never comes.
 *  A2  A taken key is told apart by looking up the id, never by what the database says of it: present = a duplicate,
 *      absent = the seq was taken by somebody else, so the end of the log is read again.
 *  A3  Of one log one append runs at a time; those that come meanwhile go together, in the order they came. Processes
 *      may clash, appends of one process never do.
 *  A4  What was seen but never acknowledged to us may be undone by a crash of the server, so after any failure, and
 *      when the connection was lost, nothing is remembered.
 *  A5  A log that was removed begins again at 1, while others may still remember its end. So what was seen is trusted for
 *      a time, and a removal ends with a look after a longer one: an insert that is through by then has its event before
 *      it, or is found and removed with it. After one that took longer what was inserted is looked for, and the event
 *      before it. Where one is gone, by a removal or by another who found a hole below his own, what stands above has a
 *      hole below: it is taken out, with what others have put upon it, and the end is read again.
 */
export interface AppendStats {
  /** Calls of `append`, and the rows they brought. */
  appends: number;
  rows: number;
  /** Inserts sent, and reads of the end of a log. */
  inserts: number;
  lasts: number;
  /** Rows that were there already. */
  duplicates: number;
  /** Inserts that found their seq taken or the one before it gone, and the most of them in a row for one append. */
  clashes: number;
  mostClashes: number;
}

export interface AppendQueueOptions {
  /** From 0 up to, not including, 1. */
  random: () => number;
  sleep: (ms: number) => Promise<unknown>;
  /** Ms. Without one nothing is known of time: memory is trusted, and the event before is looked for after every insert. */
  monotonic?: () => number;
}

interface Stored {
  seq: number;
  hash: string;
}

interface Head {
  seq: number;
  /** It existed then, or later. */
  at: number;
}

/** Clashes in a row before an append gives up: with 32 processes at one log the worst seen is a fraction of it. */
const MAX_CLASHES = 100;
const FIRST_BACK_OFF_MS = 4;
const MAX_BACK_OFF_MS = 250;
/** How long what was seen is trusted to exist, and the longer time after which a removal looks again (A5). */
const TRUST_MS = 500;
const LOOK_AGAIN_MS = 750;
/** Bounds one insert. */
const MAX_ROWS = 256;
/** Bounds what is remembered. */
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
    seen: heads.seen,
    readLast: heads.readLast,
    /** Until whoever trusts what he saw before now has found out. */
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

/** Ends of logs that this process has seen. At most `MAX_HEADS` are kept. */
function createHeads(events: EventDocuments, { monotonic }: AppendQueueOptions) {
  const heads = new Map<string, Head>();
  const now = () => monotonic?.() ?? 0;
  const isPast = (at: number, otherwise: boolean) => (monotonic ? now() - at >= TRUST_MS : otherwise);

  /** An event with this seq existed at some moment after `at`. */
  function seen(log: LogKey, seq: number, at: number): void {
    const name = nameOf(log);
    const known = heads.get(name);
    if (!Number.isSafeInteger(seq) || seq < (known?.seq ?? 1)) return;
    if (heads.size >= MAX_HEADS && !known) heads.clear();
    heads.set(name, { seq, at: seq === known?.seq ? Math.max(at, known.at) : at });
  }

  async function readLast(log: LogKey): Promise<number> {
    const name = nameOf(log);
    const known = heads.get(name);
    const at = now();
    const last = await events.last(log, known?.seq);
    // It was removed, and has perhaps begun again.
    if (known && last < known.seq && heads.get(name) === known) heads.delete(name);
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
    const remembered = progress.trustedHead();
    const begun = now();
    const head = remembered?.seq ?? (await readLast(log));
    const sent = now();
    const group = rowsUpToRepeat(rows, outcomes.length, stored);
    stats.inserts += 1;
    const inserted = await events.insert(
      group.map((each, at): EventRow => ({ ...each, seq: head + 1 + at })),
    );
    const ours = group.slice(0, inserted);
    const before = { seq: head, at: remembered?.at ?? begun };
    const kept = inserted === 0 ? 0 : await countKept(appending, log, ours, before);
    for (const [at, each] of ours.slice(0, kept).entries())
      settle(each, 'appended', { seq: head + 1 + at, hash: each.hash }, sent);
    if (kept < inserted) {
      clashed(ours[kept] ?? row);
      continue;
    }
    const refused = group[inserted];
    if (refused) await progress.resolveTaken(refused, remembered !== undefined, sent);
  }
  return outcomes;
}

/** Outcomes of one group of rows, and the clashes in a row on the way to them. */
function createAppendProgress({ events, heads, stats, options }: Appending, log: LogKey) {
  const outcomes: AppendOutcome[] = [];
  const stored = new Map<string, Stored>();
  let clashes = 0;
  let isOld = false;

  /** Undefined after a clash, and when the last look is too long ago: the end of the log must be read. */
  function trustedHead(): Head | undefined {
    const known = isOld ? undefined : heads.known(log);
    const trusted = known && !heads.isPast(known.at, false) ? known : undefined;
    if (!trusted) stats.lasts += 1;
    isOld = false;
    return trusted;
  }

  function settle({ id }: NewEventRow, kind: AppendOutcome['kind'], { seq, hash }: Stored, at: number): void {
    outcomes.push(kind === 'appended' ? { kind, seq } : { kind, seq, hash });
    if (kind === 'duplicate') stats.duplicates += 1;
    stored.set(id, { seq, hash });
    heads.seen(log, seq, at);
    clashes = 0;
  }

  function clashed({ id }: NewEventRow): void {
    isOld = true;
    clashes += 1;
    stats.clashes += 1;
    stats.mostClashes = Math.max(stats.mostClashes, clashes);
    if (clashes > MAX_CLASHES) throw crowded(log, id);
  }

  /** Finds out which of the row's keys was taken (A2). A seq from memory may just be old: then there is no crowd to wait for. */
  async function resolveTaken(row: NewEventRow, wasRemembered: boolean, at: number): Promise<void> {
    const twin = await events.find(log, row.id);
    if (twin) return settle(row, 'duplicate', twin, at);
    clashed(row);
    if (wasRemembered) return;
    await options.sleep(options.random() * Math.min(FIRST_BACK_OFF_MS * 2 ** (clashes - 1), MAX_BACK_OFF_MS));
  }

  return { outcomes, stored, trustedHead, settle, clashed, resolveTaken };
}

/** A5: how many of the rows that were inserted after `head`, which existed at `at`, may stay. */
async function countKept(
  { events, heads }: Appending,
  log: LogKey,
  rows: readonly NewEventRow[],
  { seq: head, at }: Head,
): Promise<number> {
  if (!heads.isPast(at, true) || (head === 0 && rows.length === 1)) return rows.length;
  const found = await events.keys(log, { after: Math.max(0, head - 1), upTo: head + rows.length });
  const ids = new Map(found.map(({ seq, id }) => [seq, id]));
  const isHeadGone = head > 0 && !ids.has(head);
  const lost = isHeadGone ? 0 : rows.findIndex(({ id }, index) => ids.get(head + 1 + index) !== id);
  if (lost < 0) return rows.length;
  heads.forgetLog(log);
  // Where another's event has come into the place of ours, there is no hole.
  if (isHeadGone || !ids.has(head + 1 + lost))
    while ((await events.removeNewest(log, { after: head + lost, limit: MAX_ROWS })) === MAX_ROWS);
  return lost;
}

function nameOf({ tenant, conversation }: LogKey): string {
  return `${tenant}/${conversation}`;
}

/** The next rows up to one whose id stands among those before it. */
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

/** Whole calls, at least one, up to `MAX_ROWS` rows. */
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
  const message = `event ${id} found its place in conversation ${conversation} taken ${MAX_CLASHES} times; too many write to it at once, try again`;
  return new TroupeError('store_unavailable', message, { conversation, id });
}
