import { createHash } from 'node:crypto';
import type { Principal } from '../library/access/index.ts';
import { TroupeError } from '../base/errors.ts';
import { ConversationId } from '../events/index.ts';

const MAX_ID = 128;
/** Fewer letters of a hash may be those of another name. */
const LEAST_NAME = 16;

/** An idempotency key of a client, as one of this caller alone: others may use the same. */
export function callersKey({ id }: Principal, ...given: readonly string[]): string {
  return digest([id, ...given]);
}

function digest(parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);
}

/** A name that is too long is replaced by its hash, so that different names stay different. */
function fitted(name: string, room: number): string {
  if (name.length <= room) return name;
  if (room >= LEAST_NAME) return digest([name]).slice(0, room);
  throw new TroupeError(
    'event_invalid',
    'name the conversation: the prefix granted to this caller leaves no room for a name',
    {
      path: 'conversation',
    },
  );
}

/** An id of a conversation that the caller may write to. Throws `event_invalid` if it may not begin one. */
export function newConversation({ conversations }: Principal, name: string): string {
  const patterns = conversations ?? ['*'];
  const prefix = patterns.find((pattern) => pattern.endsWith('*'))?.slice(0, -1);
  if (prefix !== undefined) return ConversationId.parse(`${prefix}${fitted(name, MAX_ID - prefix.length)}`);
  const [only, ...others] = patterns;
  if (only !== undefined && others.length === 0) return only;
  throw new TroupeError('event_invalid', 'name the conversation: this caller may not begin a new one', {
    path: 'conversation',
  });
}
