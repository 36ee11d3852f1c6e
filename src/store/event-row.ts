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

/** What is left of an event whose words were erased, as the data of its row, and the hash of that. */
export function encodeErased({ erased, ...event }: EventType): { data: string; hash: string } {
  const data = JSON.stringify({ ...(JSON.parse(dataOf(event)) as object), erased });
  const { kind, to, turn = null } = event;
  return { data, hash: payloadHash({ kind, to, turn, data }) };
}

/** The event of a fresh append, built from the draft: this is a hot path, so nothing is read or parsed again. */
export function appendedEvent(log: ConversationKey, { draft, at, tokens }: NewEvent, seq: number): EventType {
  return { ...draft, tenant: log.tenant, conversation: log.conversation, seq, at, tokens };
}

/** What is wrong with a stored row. `altered`: its content does not match its hash. `unreadable`: it is no event. */
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
 * Never throws. An unreadable row becomes an `error` event at its seq, so that the log stays dense. An altered row that
 * is an event is returned with the mark `altered`, and marked in its texts: without it, turns and tasks that it ends would be open again.
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
  // Workflows compare the name of a phase.
  const phase = 'phase' in event.body && { phase: event.body.phase };
  return { ...event, body: { ...body, ...phase }, altered: true } as EventType;
}

/**
 * Kinds whose schemas fill in nothing. An event of such a kind whose content is the one that was appended is not validated
 * again: the process that appended it went on with the draft as it was, so the draft is the event.
 */
const AS_APPENDED: ReadonlySet<string> = new Set(
  EVENT_KINDS.filter((kind) => !isAbout({ kind }, 'defaults')),
);

/** The event, or the reason why the row is none. */
function parseEvent(log: ConversationKey, row: EventRow, intact: boolean): EventType | string {
  let rest: unknown;
  try {
    rest = JSON.parse(row.data);
  } catch (error) {
    return `its data is not JSON (${String(error)})`;
  }
  if (rest === null || typeof rest !== 'object' || Array.isArray(rest)) return 'its data is not an object';
  const { id, kind, to, seq, at, tokens } = row;
  // `log` may be the address of an actor: only these two fields may enter the event.
  const { tenant, conversation } = log;
  const candidate: Record<string, unknown> = { ...rest, tenant, conversation, id, kind, to, seq, at, tokens };
  if (row.turn !== null) candidate['turn'] = row.turn;
  if (intact && AS_APPENDED.has(kind) && hasValidColumns(row)) return candidate as unknown as EventType;
  const parsed = eventSchema(kind).safeParse(candidate);
  return parsed.success ? parsed.data : reasonOf(parsed.error);
}

/** The hash of the content does not cover these. */
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
 * Compares without id, time and token count: the two share the id, and the store adds the rest. Channel, mode and run do not
 * count either: a message may be sent again through another door, in another mode, or after an upgrade from a version that
 * stored none of them.
 */
export function isSamePayload(a: NewEventRow, b: NewEventRow): boolean {
  if (a.hash === b.hash) return true;
  try {
    return canonicalPayload(a) === canonicalPayload(b);
  } catch {
    // An unreadable payload equals no other.
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
 * Each row of an event holds two hashes. `hash` covers its content. `chain` covers the row's id, place, time, token count
 * and `hash`, and the chain value of the event before it.
 *  H1  Both are computed when the row is appended and never change. Readers only compare.
 *  H2  The chain value of an event follows from that of the event with the seq before it. A conversation's first event
 *      continues the name of its log, and so does an event after one without a chain value: it was written by a version
 *      that made none.
 *  H3  Neither is secret. They reveal damage and edits; a writer of the database who computes them anew is not found.
 */
type Content = Pick<EventRow, 'kind' | 'to' | 'turn' | 'data'>;

/**
 * Hash of the content. Equal hashes mean a repeated append. With different hashes the append may still be a repetition
 * whose keys have another order: `isSamePayload` decides.
 */
export function payloadHash({ kind, to, turn, data }: Content): string {
  return hash('sha256', JSON.stringify([kind, to, turn]) + data, 'base64url');
}

/** Whether the content is the one that was appended. Id, time and token count are covered by the chain alone. */
function isIntact(row: Content & Pick<EventRow, 'hash'>): boolean {
  return payloadHash(row) === row.hash;
}

/** The chain value of a row at `seq`. `before`: that of its predecessor; null if there is none. */
export function chainValue(row: NewEventRow, seq: number, before: string | null): string {
  const { tenant, conversation, id, at, tokens } = row;
  const link = JSON.stringify([before ?? `${tenant}/${conversation}`, seq, id, at, tokens, row.hash]);
  return hash('sha256', link, 'base64url');
}

/** Rows at consecutive seqs, the first after the event at `head`. */
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
