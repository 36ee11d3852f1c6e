import { TroupeError } from '../errors.ts';
import { ConversationId, EventDraft, type EventId, tryParse } from '../events/index.ts';
import { randomFillSync } from 'node:crypto';
import { monotonicFactory } from 'ulid';

/** Parses an event of a caller. Throws `event_invalid` with the path of the first problem. */
export function parseDraft(input: unknown): EventDraft {
  const parsed = tryParse(EventDraft, input);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const path = issue?.path.map(String).join('.') ?? '';
  throw new TroupeError('event_invalid', `${path || 'event'}: ${issue?.message}`, { path });
}

export function conversationId(text: string): ConversationId {
  const parsed = ConversationId.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new TroupeError('event_invalid', `conversation: ${parsed.error.issues[0]?.message}`, {
    path: 'conversation',
  });
}

/** Random bytes are fetched in bulk, because a call for them costs more than the rest of an id. */
const pool = new Uint8Array(4_096);
let used = pool.length;

function fromPool(): number {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  return pool[used++]! / 256;
}

/** A ULID. The ids of one process increase, also within a millisecond. */
export const mintId = monotonicFactory(fromPool) as () => EventId;
