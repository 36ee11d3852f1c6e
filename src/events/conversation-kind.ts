import type { Event } from './event.ts';
import type { ConversationId } from './ids.ts';

/** What a conversation is to others. */
export interface ConversationKind {
  /** `thread`: it was opened for a task. */
  kind: 'conversation' | 'thread';
  /** The conversation that its task was given in. Null: it is no thread. */
  parent: ConversationId | null;
}

/** The kind by the first event, which opens a thread: the form of an id alone proves nothing, people may choose it. */
export function kindOf(id: string, first: Event | undefined): ConversationKind {
  if (first?.kind === 'delegation.opened' && first.body.thread === id)
    return { kind: 'thread', parent: first.body.home };
  return { kind: 'conversation', parent: null };
}
