import * as z from 'zod';
import { TurnId } from './ids.ts';

const MAX_TEXT = 100_000;

/** What is different when a turn is run again. */
export const RerunChange = z.discriminatedUnion('kind', [
  /** Other words of the message that began the turn; of several, the last one. */
  z.strictObject({ kind: z.literal('message'), content: z.string().min(1).max(MAX_TEXT) }),
  /** Other instructions of the agent, for this turn. */
  z.strictObject({ kind: z.literal('instructions'), text: z.string().max(MAX_TEXT) }),
  /** Another model, for this turn. Default of `provider`: the agent's own; another must be that of an agent here. */
  z.strictObject({
    kind: z.literal('model'),
    model: z.string().min(1).max(256),
    provider: z.string().min(1).max(64).optional(),
  }),
  /** Another result of a call. The steps up to this call are taken from the turn, and the model is asked from there. */
  z.strictObject({
    kind: z.literal('toolResult'),
    /** Id of the call. */
    call: z.string().min(1).max(256),
    result: z.string().max(MAX_TEXT),
  }),
]);
export type RerunChange = z.infer<typeof RerunChange>;

/**
 * `recorded`: a call with the name and arguments of a call of the original turn gets the result of that call, and any other
 * is refused. `run`: any other is made.
 */
export const RerunTools = z.enum(['recorded', 'run']);
export type RerunTools = z.infer<typeof RerunTools>;

/** A turn that is run again in a fork. */
export const Rerun = z.strictObject({
  /** The turn in the original. Its repetition has the same agent and number. */
  turn: TurnId,
  /** Absent: the same again. */
  change: RerunChange.optional(),
  tools: RerunTools,
});
export type Rerun = z.infer<typeof Rerun>;
