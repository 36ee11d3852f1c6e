import type { ConversationId } from '../events/index.ts';

/** Threads are named after the conversation that their tasks began in. */
const THREADS = /(?:\.d-[0-9a-f]{12})+$/;

/**
 * What takes turns within a tenant: a conversation with the threads of all that is delegated in it. Read from the name,
 * so that nobody has to be asked; one that only looks like a thread shares its turns, and nothing else.
 */
export function familyOf(conversation: ConversationId): string {
  return conversation.replace(THREADS, '');
}
