import * as z from 'zod';
import { TurnId } from './ids.ts';

/**
 * What a session-stateful provider remembers for us: a disposable cache of one agent's view, never shared and never
 * moved. It is used only while every part matches what it would be sent anew; else a new one begins, and an event says why.
 */
export const Session = z.strictObject({
  provider: z.string(),
  id: z.string(),
  /** The end of the last answer that counts, as the provider names it. */
  checkpoint: z.string(),
  /** Machine and directories it is bound to. */
  home: z.string(),
  model: z.string(),
  /** The baseline event in force when it began: the epoch. */
  baseline: z.string(),
  /** The view up to where it was sent: so many messages, and the chained hash over them. */
  sent: z.int().nonnegative(),
  sentHash: z.string(),
  /** The turn whose last answer it holds beyond them. */
  turn: TurnId,
  /** The provider has shortened its memory by itself since it began. */
  compacted: z.boolean(),
  /** `unknown`: a turn broke off in it, and it cannot be taken back. */
  state: z.enum(['ok', 'unknown']),
});
export type Session = z.infer<typeof Session>;

/** Why a session begins: there was none, or the one there was does not match any more. */
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

/** What became of a session within a turn; see the kinds `session.*`. One that goes on as it was is not told of. */
export const SessionNote = z.strictObject({
  provider: z.string(),
  session: z.string(),
  reason: SessionReason.optional(),
});
export type SessionNote = z.infer<typeof SessionNote>;
