import * as z from 'zod';
import { TurnId } from './ids.ts';

/**
 * The session of a stateful provider: a disposable cache of one agent's view, never shared and never moved. It is used
 * only if it matches the full prompt in every part. Otherwise a new session begins, and an event gives the reason.
 */
export const Session = z.strictObject({
  provider: z.string(),
  id: z.string(),
  /** The provider's id for the end of the last valid answer. */
  checkpoint: z.string(),
  /** The machine and the directories that the session is bound to. */
  home: z.string(),
  model: z.string(),
  /** The baseline event (the epoch) in force at the start of the session. */
  baseline: z.string(),
  /** Number of messages of the view that were sent. */
  sent: z.int().nonnegative(),
  /** Chained hash over the messages that were sent. */
  sentHash: z.string(),
  /** The turn whose last answer the session has beyond the messages sent. */
  turn: TurnId,
  /** Whether the provider itself has compacted the session. */
  compacted: z.boolean(),
  /** `unknown`: a turn was interrupted, and the session cannot be rewound. */
  state: z.enum(['ok', 'unknown']),
});
export type Session = z.infer<typeof Session>;

/** Why a session begins: it is the first, or the mismatch that ended the one before. */
export const SessionReason = z.enum([
  'first',
  'provider',
  'model',
  'elsewhere',
  'baseline',
  'rewritten',
  'unknown',
  'compacted',
  'lost',
]);
export type SessionReason = z.infer<typeof SessionReason>;

/** Body of the `session.*` events. A session that simply continues has no event. */
export const SessionNote = z.strictObject({
  provider: z.string(),
  session: z.string(),
  reason: SessionReason.optional(),
});
export type SessionNote = z.infer<typeof SessionNote>;
