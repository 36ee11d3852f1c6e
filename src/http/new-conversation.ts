import type { Principal } from '../access/index.ts';
import { TroupeError } from '../errors.ts';
import { ConversationId } from '../events/index.ts';

/** An id of a conversation that the caller may write to. Throws `event_invalid` if it may not begin one. */
export function newConversation({ conversations }: Principal, name: string): string {
  const patterns = conversations ?? ['*'];
  const prefix = patterns.find((pattern) => pattern.endsWith('*'))?.slice(0, -1);
  if (prefix !== undefined) return ConversationId.parse(`${prefix}${name}`.slice(0, 128));
  const [only, ...others] = patterns;
  if (only !== undefined && others.length === 0) return only;
  throw new TroupeError('event_invalid', 'name the conversation: this caller may not begin a new one', {
    path: 'conversation',
  });
}
