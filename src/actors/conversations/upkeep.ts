import type { AgentId, ConversationId } from '../../events/index.ts';

/** What is said to an agent at certain times. */
export interface Schedule {
  name: string;
  conversation: ConversationId;
  to: AgentId;
  content: string;
  /** The last of its times that is not after `now`, ms. */
  lastBy(now: number): number | null;
}

/** When conversations end by themselves; never where nothing is said. */
export interface Lifecycle {
  /** Quiet for so long, a conversation is archived. */
  archiveAfterMs?: number | undefined;
  /** So long after its last event, an archived conversation is deleted. */
  deleteAfterMs?: number | undefined;
}
