import type { Slices } from '../base/slices.ts';
import type { EventRow, StoreDriver } from './driver.ts';
import { decodeEvent, chainValue, payloadHash } from './event-row.ts';
import { type Event, isErasure } from '../events/index.ts';
import type { ConversationKey, LogProblem, LogVerification } from './store.ts';

/** Maximum events of one part, so that a caller can report progress. */
const VERIFIED_EVENTS = 10_000;
const MOST_LISTED = 100;
/** Bounds of one read, the same as for a page of a log. */
const READ = { limit: 250, maxBytes: 512 * 1024 };

/** Reads page by page, and lets other work run between pages. */
export async function verifyLog(
  { driver, slices }: { driver: StoreDriver; slices: Slices },
  { tenant, conversation }: ConversationKey,
  after: number,
): Promise<LogVerification> {
  const log = { tenant, conversation };
  const head = await driver.head(log);
  const upTo = Math.min(head, after + VERIFIED_EVENTS);
  const found: LogVerification = {
    head,
    events: 0,
    erased: 0,
    unchained: 0,
    begins: [],
    problems: [],
    problemCount: 0,
    chain: null,
    next: upTo < head ? upTo : null,
  };
  const [before] = await driver.readEvents({ ...log, after: after - 1, upTo: after, limit: 1 });
  let last: Place = before ?? { seq: after, chain: null, isMissing: after > 0 };
  while (last.seq < upTo) {
    const rows = await driver.readEvents({ ...log, after: last.seq, upTo, ...READ });
    for (const row of rows) {
      const event = verifyRow(found, log, row, last);
      if (event.erased !== undefined) await verifyErased(driver, found, row, event);
      last = row;
    }
    if (rows.length === 0) break;
    await slices.next();
  }
  noteGap(found, last.seq + 1, upTo);
  return { ...found, chain: last.chain };
}

/** The position of an event, or the position before the first event. */
interface Place {
  seq: number;
  chain: string | null;
  isMissing?: boolean;
}

function verifyRow(found: LogVerification, log: ConversationKey, row: EventRow, last: Place): Event {
  const { seq, id, chain } = row;
  noteGap(found, last.seq + 1, seq - 1);
  found.events += 1;
  const { event, damage } = decodeEvent(log, row);
  if (damage) note(found, damage);
  if (chain === null) {
    found.unchained += 1;
    return event;
  }
  // After a missing event there is no chain value to compare with.
  if (last.isMissing || last.seq !== seq - 1) return event;
  const isBegin = last.chain === null;
  if (isBegin && found.begins.length < MOST_LISTED) found.begins.push(seq);
  // After an event without a chain value any value is accepted. At seq 1 the value follows from the name of the log.
  if ((isBegin && seq > 1) || chain === chainValue(row, seq, last.chain)) return event;
  const reason = 'its chain value does not follow from the event before it';
  note(found, { kind: 'unlinked', seq, id, reason });
  return event;
}

/** A changed row could pretend to be erased. So the erasure, which the chain covers, must name the event and its present hash. */
async function verifyErased(
  driver: StoreDriver,
  found: LogVerification,
  row: EventRow,
  event: Event,
): Promise<void> {
  const { tenant, conversation, seq, id } = row;
  const said = await driver.readEvent({ tenant, conversation, id: event.erased ?? '' });
  const erasure = said && decodeEvent(event, said);
  const named =
    erasure && !erasure.damage && isErasure(erasure.event)
      ? erasure.event.body.erasure?.events.find((each) => each.id === id)
      : undefined;
  if (named?.hash === payloadHash(row)) found.erased += 1;
  else note(found, { kind: 'altered', seq, id, reason: 'no erasure of this log names what is left of it' });
}

function noteGap(found: LogVerification, seq: number, upTo: number): void {
  if (seq <= upTo) note(found, { kind: 'missing', seq, upTo });
}

function note(found: LogVerification, problem: LogProblem): void {
  found.problemCount += 1;
  if (found.problems.length < MOST_LISTED) found.problems.push(problem);
}
