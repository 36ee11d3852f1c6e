import type { ActorAddress, ConversationId, StreamDelta, TenantId, TurnId } from '../events/index.ts';

/**
 * What the processes of one troupe call out to each other. Hints for watchers and holders: any of them may be lost,
 * late or doubled, and nothing depends on one. The store is the truth. Proved by `testing/broadcast-conformance.ts`:
 *  B1  What one member publishes reaches every other member that listens then, and never the publisher itself.
 *  B2  Deltas of one (turn, attempt, step) may come joined to fewer and longer ones, in order; `index` is that of the
 *      first piece, and a piece with index 0 always begins a new one.
 *  B3  Publishing never waits and never throws; a listener that throws takes nothing from the others.
 *  B4  After `close` nothing is delivered.
 */
export type Notice =
  | { type: 'appended'; tenant: TenantId; conversation: ConversationId; head: number }
  | { type: 'delta'; delta: StreamDelta }
  | { type: 'stop'; address: ActorAddress; turn: TurnId };

export interface Broadcast {
  publish(notice: Notice): void;
  subscribe(listener: (notice: Notice) => void): () => void;
  close(): Promise<void>;
}
