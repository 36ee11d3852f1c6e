import { spareId } from '../../events/index.ts';
import type {
  AcquireOutcome,
  ActorKey,
  ActorRow,
  ActorStep,
  AppendOutcome,
  EventRow,
  NewEventRow,
  StepAppend,
  StepEvent,
  StepOutcome,
  StoreDriver,
} from '../driver.ts';
import type { ActorCondition, DocumentChange, Documents } from './documents.ts';

/**
 * A step of an actor on single-document operations. One update of the actor's document makes the change and stores the step's
 * events in the document's data (the outbox). The events stay there until they are appended to their logs.
 *  O1  The holder of the lease appends the events: the process that made the step, or after a crash the next holder, as part of
 *      `acquire`.
 *  O2  Appending is safe to repeat, because an id is stored once. A document with events to append accepts no other data.
 *  O3  Events are appended in order per log. The log of the first event is written before all others.
 *  O4  `told` is called before the events are removed from the document. If the holder dies in between, the next holder calls it
 *      again.
 *  O5  A step that fails after its update releases the lease, so that the next holder can continue at once.
 *  O6  After releasing the lease, the process checks once more for events that address the actor. The wake of an event that
 *      arrived meanwhile may have found the lease taken, and no other wake is certain to follow.
 */
interface Parts {
  documents: Pick<Documents, 'actors' | 'events' | 'entries'>;
  append: (rows: readonly NewEventRow[]) => Promise<AppendOutcome[]>;
  putOnce: (entry: NonNullable<ActorStep['entries']>[number]) => Promise<unknown>;
  runs: OwnRuns;
}

interface Held {
  data: string;
  events: readonly StepEvent[];
}

export function withoutEvents(row: ActorRow): ActorRow {
  return row.outbox ? { ...row, data: heldIn(row).data } : row;
}

/** Damaged data becomes a text that the caller cannot decode either, and reports. */
function heldIn({ data }: ActorRow): Held {
  try {
    const held = JSON.parse(data) as Held;
    if (typeof held.data === 'string' && Array.isArray(held.events)) return held;
  } catch {
    // Not JSON.
  }
  return { data: `its events cannot be read: ${data.slice(0, 100)}`, events: [] };
}

/** Appends the events that an earlier holder left in the outbox. `row` is the actor whose lease was just taken. */
export async function settle(
  parts: Parts,
  row: ActorRow,
  told: Parameters<StoreDriver['acquire']>[2],
): Promise<AcquireOutcome> {
  if (!row.outbox) return { kind: 'acquired', row };
  const { data, events } = heldIn(row);
  if (events.length === 0) return { kind: 'acquired', row: { ...row, data } };
  const appended = await publish(parts, events);
  await told?.(rowsOf(events, appended));
  const settled = await parts.documents.actors.update(row, { fence: row.fence }, { data, outbox: false });
  if (!settled) return { kind: 'busy', until: row.until };
  return { kind: 'acquired', row: settled };
}

function rowsOf(events: readonly StepEvent[], appended: readonly StepAppend[]): EventRow[] {
  return events.flatMap(({ row }, index) => {
    const stored = appended[index];
    return stored && stored.kind !== 'taken' ? [{ ...row, seq: stored.seq, id: stored.id, chain: null }] : [];
  });
}

export async function step(parts: Parts, key: ActorKey, asked: ActorStep): Promise<StepOutcome | null> {
  const { actors } = parts.documents;
  const { change, entries = [], events = [], rests, told } = asked;
  await Promise.all(entries.map(parts.putOnce));
  const kept = keptIn(asked);
  const row = await actors.update(key, conditionOf(asked), {
    ...change,
    ...(kept !== null && { data: kept, outbox: true }),
    ...(asked.takes && { raiseFence: true }),
  });
  if (!row) return null;
  try {
    const appended = await publish(parts, events);
    parts.runs.note(row, events, appended);
    await told?.(appended);
    if (kept === null && !rests) return { row: withoutEvents(row), isAddressed: false };
    const settled = kept === null ? {} : { data: change.data!, outbox: false };
    if (rests) return await giveBack(parts, row, endIn(row, events, appended), settled);
    // Null: another process has taken the lease, and has appended the events too.
    const after = await actors.update(key, { fence: row.fence }, settled);
    return { row: withoutEvents(after ?? row), isAddressed: false };
  } catch (error) {
    await actors.update(key, { fence: row.fence }, { owner: '', until: 0 }).catch(() => null); // O5; otherwise the lease expires
    throw error;
  }
}

/** `end`: seq of the last event that the step appended to the actor's own log. */
async function giveBack(
  parts: Parts,
  row: ActorRow,
  end: number,
  settled: DocumentChange,
): Promise<StepOutcome> {
  const wasAddressed = await isAddressedBefore(parts, row, end);
  const rest = { owner: '', until: 0, ...(!wasAddressed && { processed: end }) };
  const after = await parts.documents.actors.update(row, { fence: row.fence }, { ...settled, ...rest });
  const isAddressed = wasAddressed || (after !== null && (await isAddressedAfter(parts, row, end))); // O6
  return { row: withoutEvents(after ?? row), isAddressed };
}

/** The condition of the update that makes a step. */
export function conditionOf({ expect, change }: ActorStep): ActorCondition {
  const { freeAt, ...holds } = expect;
  return {
    ...holds,
    ...(freeAt !== undefined && { freeAt, parked: null }),
    ...(change.data !== undefined && { outbox: false }),
  };
}

/** The data of the document until the events are in their logs. Null: the events need not be kept. */
function keptIn({ change: { data }, events = [], isRepeated }: ActorStep): string | null {
  return events.length === 0 || isRepeated || data === undefined ? null : JSON.stringify({ data, events });
}

/** Seq of the last event that the step has in the actor's own log, at least `processed`. */
function endIn(row: ActorRow, events: readonly StepEvent[], appended: readonly StepAppend[]): number {
  let { processed } = row;
  for (const [index, { row: event }] of events.entries()) {
    const stored = appended[index]!;
    if (event.conversation === row.conversation && stored.kind !== 'taken')
      processed = Math.max(processed, stored.seq);
  }
  return processed;
}

/** Whether an unprocessed event addresses the actor. `end`: seq of the step's last event in the actor's own log. */
async function isAddressedBefore({ documents, runs }: Parts, row: ActorRow, end: number): Promise<boolean> {
  const isAlone = end > row.processed && runs.reaches(row, end);
  runs.forget(row);
  return !isAlone && isAddressedAfter({ documents }, row, row.processed);
}

async function isAddressedAfter(
  { documents }: Pick<Parts, 'documents'>,
  key: ActorKey,
  after: number,
): Promise<boolean> {
  const seqs = await documents.events.addressed(key, { after, upTo: Number.MAX_SAFE_INTEGER });
  return seqs.length > 0;
}

/** Appends to the log of the first event before all others, so that a task is open there before anybody can end it. */
async function publish(
  { append }: Pick<Parts, 'append'>,
  events: readonly StepEvent[],
): Promise<StepAppend[]> {
  const appended: StepAppend[] = [];
  const [own, ...others] = Map.groupBy(events.keys(), (index) => events[index]!.row.conversation).values();

  async function appendLog(indexes: readonly number[]): Promise<void> {
    const outcomes = await append(indexes.map((index) => events[index]!.row));
    for (const [at, index] of indexes.entries()) {
      const event = events[index]!;
      const outcome = outcomes[at]!;
      appended[index] =
        outcome.kind === 'appended'
          ? { ...outcome, id: event.row.id }
          : await placeOf(append, event, outcome);
    }
  }

  if (own) await appendLog(own);
  await Promise.all(others.map(appendLog));
  return appended;
}

/** Outcome of an event whose id was already stored: the stored event is the same, it gets a spare id, or it is dropped. */
async function placeOf(
  append: Parts['append'],
  { row, ifTaken }: StepEvent,
  first: Extract<AppendOutcome, { kind: 'duplicate' }>,
): Promise<StepAppend> {
  let there = first;
  for (let number = 1; ; number += 1) {
    const id = number === 1 ? row.id : spareId(row.id, number);
    if (number > 1) {
      const [outcome] = await append([{ ...row, id }]);
      if (outcome?.kind === 'appended') return { kind: 'appended', seq: outcome.seq, id };
      there = outcome!;
    }
    if (there.hash === row.hash) return { kind: 'there', seq: there.seq, id };
    if (ifTaken === 'drop') return { kind: 'taken' };
  }
}

/**
 * Consecutive events that steps of this process have appended to an actor's own log. If they are all that follows the actor's
 * processed seq, it is known without a query whether an unprocessed event addresses it.
 */
interface OwnRun {
  /** Under another fence, another process may have appended in between. */
  fence: number;
  from: number;
  upTo: number;
  /** Whether one of these events addresses the actor. */
  isAddressed: boolean;
}

interface OwnRuns {
  /** Records the events of a step, after they are appended. */
  note(row: ActorRow, events: readonly StepEvent[], appended: readonly StepAppend[]): void;
  /** Whether the run contains all events after `processed` up to `seq`, and none of them addresses the actor. */
  reaches(row: ActorRow, seq: number): boolean;
  forget(key: ActorKey): void;
}

/** Maximum runs. Each belongs to an actor whose turn runs in this process. */
const MOST_KNOWN = 10_000;

export function createOwnRuns(): OwnRuns {
  const runs = new Map<string, OwnRun>();

  return {
    note(row, events, appended) {
      const known = runs.get(nameOf(row));
      let run = known?.fence === row.fence ? known : undefined;
      for (const [index, { row: event }] of events.entries()) {
        if (event.conversation !== row.conversation) continue;
        const stored = appended[index];
        if (stored?.kind === 'taken') continue;
        // An event of an earlier attempt may be anywhere in the log.
        if (stored?.kind !== 'appended') return void runs.delete(nameOf(row));
        const { seq } = stored;
        run = run?.upTo === seq - 1 ? run : { fence: row.fence, from: seq, upTo: seq, isAddressed: false };
        run.upTo = seq;
        run.isAddressed ||= event.to.includes(row.agent);
      }
      if (!run || run === known) return;
      if (runs.size >= MOST_KNOWN) runs.clear();
      runs.set(nameOf(row), run);
    },
    reaches(row, seq) {
      const run = runs.get(nameOf(row));
      return (
        run?.fence === row.fence && !run.isAddressed && run.from <= row.processed + 1 && run.upTo === seq
      );
    },
    forget: (key) => void runs.delete(nameOf(key)),
  };
}

function nameOf({ tenant, conversation, agent }: ActorKey): string {
  return `${tenant}/${conversation}/${agent}`;
}
