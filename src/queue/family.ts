import type { ConversationId } from '../events/index.ts';

/** Threads are named after the conversation that their tasks began in. */
const THREAD = /^\.d-[0-9a-f]{12}$/;
const THREAD_LENGTH = '.d-0123456789ab'.length;

/**
 * What takes turns within a tenant: a conversation with the threads of all that is delegated in it. Read from the name,
 * so that nobody has to be asked; one that only looks like a thread shares its turns, and nothing else.
 */
export function familyOf(conversation: ConversationId): string {
  let end = conversation.length;
  while (end >= THREAD_LENGTH && THREAD.test(conversation.slice(end - THREAD_LENGTH, end)))
    end -= THREAD_LENGTH;
  return conversation.slice(0, end);
}
