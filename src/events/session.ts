import * as z from 'zod';
import { AgentId, TurnId } from './ids.ts';

/**
 * The session of a stateful provider: a disposable cache of one agent's view, never shared and never moved. It is used
 * only if it matches the full prompt in every part. Otherwise a new session begins, and an event gives the reason.
 */
export const Session = z.strictObject({
  provider: z.string(),
  id: z.string(),
  /** The provider's id for the end of the last valid answer. '': the session was adopted and has no answer yet. */
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
  /**
   * The turn whose last answer the session has in addition to the messages sent. Null: the last answer made calls that ended
   * its turn, and it is sent again with their results.
   */
  turn: TurnId.nullable(),
  /** Whether the provider itself has compacted the session. */
  compacted: z.boolean(),
  /** `unknown`: a turn was interrupted, and the session cannot be rewound. */
  state: z.enum(['ok', 'unknown']),
});
export type Session = z.infer<typeof Session>;

/**
 * Why a session begins: it is the first, or the mismatch that ended the one before. `named`: an event named it. A named
 * session is refused because it is of another `provider`, lies `elsewhere`, is `taken` by another agent, conversation or
 * turn, or its `author` may not name one.
 */
export const SessionReason = z.enum([
  'first',
  'provider',
  'model',
  'elsewhere',
  'baseline',
  'rewritten',
  'unknown',
  'lost',
  'named',
  'taken',
  'author',
]);
export type SessionReason = z.infer<typeof SessionReason>;

/**
 * A session of a program, not begun by Troupe, that an agent is to continue. It is adopted if it fits the agent, else
 * ignored; an event records which.
 */
export const NamedSession = z.strictObject({
  agent: AgentId,
  /** The agent's provider. */
  provider: z.string().min(1).max(64),
  /** The provider's id of the session. */
  id: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'a session id is of A-Z a-z 0-9 . _ -'),
  /** The working directory in which the session was begun. Default: not compared. */
  cwd: z.string().min(1).max(1_024).optional(),
  /** Set by a gateway: the author of the message may not name a session. */
  refused: z.literal('author').optional(),
});
export type NamedSession = z.infer<typeof NamedSession>;

/** A session that simply continues has no event. */
export const SessionChangedBody = z.strictObject({
  /** `adopted` and `refused`: one that an event named. */
  change: z.enum(['started', 'resumed', 'rewound', 'compacted', 'lost', 'rebuilt', 'adopted', 'refused']),
  provider: z.string(),
  session: z.string(),
  reason: SessionReason.optional(),
});
export type SessionChangedBody = z.infer<typeof SessionChangedBody>;
