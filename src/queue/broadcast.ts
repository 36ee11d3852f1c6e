import type { ActorAddress, ConversationId, LiveNote, TenantId, TurnId } from '../events/index.ts';

/**
 * Notices between the processes of one troupe. They are hints for watchers and lease holders: any may be lost, late or
 * duplicated, and nothing relies on one. The store is the truth. Tested by `testing/broadcast-conformance.ts`:
 *  B1  A published notice reaches every other member that listens at that time, and never its publisher.
 *  B2  Pieces of one text (of one round of an attempt: its reply, its reasoning, the arguments of one call) may arrive
 *      joined into fewer and longer ones, in order. `index` is that of the first piece, and a piece with index 0 always
 *      begins a new text. Of progress only the latest may arrive. `appended` notices of one conversation may arrive
 *      joined, and only the latest state of an agent may arrive.
 *  B3  Publishing never waits, never throws and calls no listener synchronously. A listener that throws does not affect
 *      the others.
 *  B4  After `close` nothing is delivered, and publishing does nothing.
 */
export type Notice =
  | LiveNote
  /** Events after `after` up to `head` are in the log. Merged: lowest `after`, highest `head`. */
  | { type: 'appended'; tenant: TenantId; conversation: ConversationId; after: number; head: number }
  /** Asks for the notes of the running turns of a conversation so far. */
  | { type: 'recall'; tenant: TenantId; conversation: ConversationId }
  /** Answers `recall`. Pieces that follow continue its texts. Of several answers, only the latest may arrive. */
  | { type: 'recalled'; tenant: TenantId; conversation: ConversationId; notes: LiveNote[] }
  | { type: 'stop'; address: ActorAddress; turn: TurnId }
  /** A task was cancelled with its subtasks; `task` may be a conversation's id, for all tasks that began there. */
  | { type: 'cancelled'; tenant: TenantId; task: string };

/** Sends and receives notices: B1 to B4. */
export interface Broadcast {
  /** Sends a notice to all other processes. */
  publish(notice: Notice): void;
  /** Whether no other process listens or publishes. Absent: there may be others. */
  isAlone?(): boolean;
  /** Receives what other processes publish. Returns a function that ends it. */
  subscribe(listener: (notice: Notice) => void): () => void;
  /** Closes it. */
  close(): Promise<void>;
}
