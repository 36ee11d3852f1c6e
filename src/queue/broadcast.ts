import type {
  ActorAddress,
  ConversationId,
  StateNote,
  StreamDelta,
  TenantId,
  TurnId,
} from '../events/index.ts';

/**
 * Notices between the processes of one troupe. They are hints for watchers and lease holders: any may be lost,
 * late or duplicated, and nothing depends on one. The store is the truth. Proved by `testing/broadcast-conformance.ts`:
 *  B1  What one member publishes reaches every other member that listens then, and never the publisher itself.
 *  B2  Deltas of one (turn, attempt, step) may come joined to fewer and longer ones, in order; `index` is that of the
 *      first piece, and a piece with index 0 always begins a new one. Notices of one conversation that it has grown may
 *      come joined too, and of the states of one agent only the latest may come.
 *  B3  Publishing never waits, never throws and calls no listener synchronously; a listener that throws does not affect
 *      from the others.
 *  B4  After `close` nothing is delivered, and publishing does nothing.
 */
export type Notice =
  /** Events after `after` up to `head` are in the log. Merged: lowest `after`, highest `head`. */
  | { type: 'appended'; tenant: TenantId; conversation: ConversationId; after: number; head: number }
  | { type: 'delta'; delta: StreamDelta }
  | { type: 'state'; note: StateNote }
  | { type: 'stop'; address: ActorAddress; turn: TurnId }
  /** A task was called off with all its subtasks; or, given a conversation's id, all tasks that came from it. */
  | { type: 'called off'; tenant: TenantId; task: string };

export interface Broadcast {
  publish(notice: Notice): void;
  subscribe(listener: (notice: Notice) => void): () => void;
  close(): Promise<void>;
}
