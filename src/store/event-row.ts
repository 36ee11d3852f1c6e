import {
  canonicalJson,
  EVENT_KINDS,
  eventSchema,
  type EventDraft,
  EventId,
  type Event as EventType,
  isAbout,
  isEventId,
  runtimeId,
  SYSTEM_AUTHOR,
} from '../events/index.ts';
import { CHANGED_MARK } from '../events/erased-words.ts';
import { createRedaction } from '../events/redaction.ts';
import type { EventRow, NewEventRow } from './driver.ts';
import type { ConversationKey, NewEvent } from './store.ts';
import { hash } from 'node:crypto';

export function encodeEvent(log: ConversationKey, { draft, at, tokens }: NewEvent): NewEventRow {
  const row = {
    tenant: log.tenant,
    conversation: log.conversation,
    id: draft.id,
    at,
    kind: draft.kind,
    to: draft.to,
    hash: '',
    tokens,
    turn: draft.turn ?? null,
    data: dataOf(draft),
  };
  row.hash = payloadHash(row);
  return row;
}

/** Absent fields are left out of the text, so that a field added later changes no older event's hash. */
function dataOf({ author, body, replyTo, hop, context, whileBusy }: EventDraft): string {
  return JSON.stringify({ author, body, replyTo, hop, context, whileBusy });
}

/** The data of the row of an event whose words were erased, and the hash of that content. */
export function encodeErased({ erased, ...event }: EventType): { data: string; hash: string } {
  const data = JSON.stringify({ ...(JSON.parse(dataOf(event)) as object), erased });
  const { kind, to, turn = null } = event;
  return { data, hash: payloadHash({ kind, to, turn, data }) };
}

/** The event of a new append. Built from the draft without parsing, because this is a hot path. */
export function appendedEvent(log: ConversationKey, { draft, at, tokens }: NewEvent, seq: number): EventType {
  return { ...draft, tenant: log.tenant, conversation: log.conversation, seq, at, tokens };
}

/** A damaged row. `altered`: its content does not match its hash. `unreadable`: it is no event. */
export interface Damage {
  /** As a `LogProblem`. */
  kind: 'altered' | 'unreadable';
  /** Seq of the event. */
  seq: number;
  /** Id of the event. */
  id: string;
  /** What is wrong with it. */
  reason: string;
}

/**
 * Never throws. An unreadable row becomes an `error` event at its seq, so that the log stays dense. An altered row that is
 * still an event is returned with `altered` and a mark in its texts. Leaving it out would reopen the turns and tasks that it
 * ends.
 */
export function decodeEvent(
  log: ConversationKey,
  row: EventRow,
): { event: EventType; damage: Damage | null } {
  const { seq, id } = row;
  const intact = isIntact(row);
  const event = parseEvent(log, row, intact);
  if (typeof event === 'string')
    return {
      event: corruptEvent(log, row, event),
      damage: { kind: 'unreadable', seq, id, reason: event },
    };
  if (intact || event.erased !== undefined) return { event, damage: null };
  const reason = 'its content does not match its hash';
  return { event: markedAsChanged(event), damage: { kind: 'altered', seq, id, reason } };
}

const marked = createRedaction(
  (text) => (text.startsWith(CHANGED_MARK) ? text : `${CHANGED_MARK} ${text}`),
  () => undefined,
);

function markedAsChanged(event: EventType): EventType {
  const body = marked.body<object>(event.body, event);
  // The name of a phase stays unmarked, because workflows compare it.
  const phase = 'phase' in event.body && { phase: event.body.phase };
  return { ...event, body: { ...body, ...phase }, altered: true } as EventType;
}

/**
 * Kinds whose schemas fill in no defaults. Their events are not validated when read if their content matches its hash: the
 * process that appended such an event used the draft as it was, so the draft is the event.
 */
const AS_APPENDED: ReadonlySet<string> = new Set(
  EVENT_KINDS.filter((kind) => !isAbout({ kind }, 'defaults')),
);

/** The event, or the reason why the row is not an event. */
function parseEvent(log: ConversationKey, row: EventRow, intact: boolean): EventType | string {
  let rest: unknown;
  try {
    rest = JSON.parse(row.data);
  } catch (error) {
    return `its data is not JSON (${String(error)})`;
  }
  if (rest === null || typeof rest !== 'object' || Array.isArray(rest)) return 'its data is not an object';
  const { id, kind, to, seq, at, tokens } = row;
  // `log` may be the address of an actor, whose other fields must not enter the event.
  const { tenant, conversation } = log;
  const candidate: Record<string, unknown> = { ...rest, tenant, conversation, id, kind, to, seq, at, tokens };
  if (row.turn !== null) candidate['turn'] = row.turn;
  if (intact && AS_APPENDED.has(kind) && hasValidColumns(row)) return candidate as unknown as EventType;
  const parsed = eventSchema(kind).safeParse(candidate);
  return parsed.success ? parsed.data : reasonOf(parsed.error);
}

/** Checks the columns that the hash of the content does not cover. */
function hasValidColumns({ id, seq, at, tokens }: EventRow): boolean {
  return isEventId(id) && [seq, at, tokens].every((n) => Number.isSafeInteger(n) && n >= 0);
}

export function reasonOf(error: {
  issues: readonly { path: readonly PropertyKey[]; message: string }[];
}): string {
  return error.issues.map(({ path, message }) => `${path.map(String).join('.')}: ${message}`).join('; ');
}

function corruptEvent(log: ConversationKey, row: EventRow, reason: string): EventType {
  const id = EventId.safeParse(row.id);
  const draft: EventDraft = {
    id: id.success ? id.data : runtimeId('corrupt', row.seq),
    author: SYSTEM_AUTHOR,
    to: [],
    kind: 'error',
    body: {
      code: 'store_corrupt',
      message: `event ${row.seq} (${row.id}) of conversation ${log.conversation} cannot be read: ${reason}`,
    },
  };
  return appendedEvent(
    log,
    { draft, at: Number.isSafeInteger(row.at) && row.at > 0 ? row.at : 0, tokens: 0 },
    row.seq,
  );
}

/**
 * Compares without id, time and token count: the two rows share the id, and the store adds the others. Channel, mode and run
 * are ignored too, because a message may be sent again through another door, in another mode, or after an upgrade from a
 * version that stored none of them.
 */
export function isSamePayload(a: NewEventRow, b: NewEventRow): boolean {
  if (a.hash === b.hash) return true;
  try {
    return canonicalPayload(a) === canonicalPayload(b);
  } catch {
    // A payload that cannot be parsed equals no other.
    return false;
  }
}

function canonicalPayload({ kind, to, turn, data }: NewEventRow): string {
  const rest = JSON.parse(data) as { context?: Record<string, unknown> };
  const { channel: _channel, mode: _mode, run: _run, ...context } = rest.context ?? {};
  const compared = Object.keys(context).length > 0 ? context : undefined;
  return canonicalJson([kind, to, turn, { ...rest, context: compared }]);
}

/**
 * Each row of an event holds two hashes. `hash` covers its content. `chain` covers the row's id, seq, time, token count
 * and `hash`, and the chain value of the event before it.
 *  H1  Both are computed when the row is appended and never change. Readers only compare.
 *  H2  The chain value of an event is computed from that of the event before it. The chain begins with the name of the log:
 *      at a conversation's first event, and after an event without a chain value, which an earlier version wrote.
 *  H3  Neither is secret. They reveal damage and edits, but not those of a writer who computes the hashes again.
 */
type Content = Pick<EventRow, 'kind' | 'to' | 'turn' | 'data'>;

/**
 * Hash of the content. Equal hashes mean a repeated append. With different hashes it may still be a repetition whose JSON
 * keys have another order: `isSamePayload` decides.
 */
export function payloadHash({ kind, to, turn, data }: Content): string {
  return hash('sha256', JSON.stringify([kind, to, turn]) + data, 'base64url');
}

/** Whether the content is what was appended. Only the chain covers id, time and token count. */
function isIntact(row: Content & Pick<EventRow, 'hash'>): boolean {
  return payloadHash(row) === row.hash;
}

/** The chain value of a row at `seq`. `before`: the chain value of its predecessor, or null. */
export function chainValue(row: NewEventRow, seq: number, before: string | null): string {
  const { tenant, conversation, id, at, tokens } = row;
  const link = JSON.stringify([before ?? `${tenant}/${conversation}`, seq, id, at, tokens, row.hash]);
  return hash('sha256', link, 'base64url');
}

/** The rows with consecutive seqs and chain values that continue the log after `head`. */
export function chainRows(
  rows: readonly NewEventRow[],
  head: { seq: number; chain: string | null },
): EventRow[] {
  let before = head.chain;
  return rows.map((row, index) => {
    const seq = head.seq + 1 + index;
    before = chainValue(row, seq, before);
    return { ...row, seq, chain: before };
  });
}
