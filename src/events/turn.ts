import * as z from 'zod';
import { Usage } from './usage.ts';

/**
 * A turn in the log, in its legal order:
 *   turn.started  (error | step | tool.result | handoff | message)*  turn.done | turn.failed | turn.aborted
 * `covers` lists the seqs of the inputs this turn has settled; every addressed event is in the covers of exactly one
 * ending of its addressee (I2).
 */
const Seq = z.int().positive();

/** The live items an agent was told at the start of the turn: only what changed since it was last told. */
export const LiveItems = z.record(z.string(), z.string());
export type LiveItems = z.infer<typeof LiveItems>;

export const TurnStartedBody = z.strictObject({
  upTo: z.int().nonnegative(),
  inputs: z.array(Seq),
  live: LiveItems,
  /** How an agent's first turn shows what came before it. */
  join: z.enum(['full', 'summary', 'fresh']),
  /** The baseline event in force, by its id. */
  baseline: z.string(),
  /** By which rules what it is shown is rendered; 1 where it is not said. */
  rendering: z.int().positive().optional(),
});
export type TurnStartedBody = z.infer<typeof TurnStartedBody>;

export const TurnDoneBody = z.strictObject({
  covers: z.array(Seq),
  steps: z.int().nonnegative(),
  usage: Usage,
  /** Present when the reply was cut off at the agent's `maxOutputTokens`. */
  cut: z.literal('length').optional(),
  /** Of the last call: the input tokens that the provider reported, and what was counted, by kind of content. */
  last: z
    .strictObject({
      reported: z.int().positive(),
      kinds: z.record(z.string(), z.number().nonnegative()),
    })
    .optional(),
});
export type TurnDoneBody = z.infer<typeof TurnDoneBody>;

export const TurnFailedBody = z.strictObject({
  covers: z.array(Seq),
  code: z.string(),
  message: z.string(),
  /** What the model had said when it failed; empty if nothing. */
  partial: z.string(),
});
export type TurnFailedBody = z.infer<typeof TurnFailedBody>;

export const TurnAbortedBody = z.strictObject({
  covers: z.array(Seq),
  by: z.string(),
  partial: z.string(),
});
export type TurnAbortedBody = z.infer<typeof TurnAbortedBody>;

/** A model call that failed inside a turn and will be repeated, or a refusal of the runtime. For people, not for prompts. */
export const ErrorBody = z.strictObject({
  code: z.string(),
  message: z.string(),
  /** From 1. */
  step: z.int().positive().optional(),
  partial: z.string().optional(),
  /** Until when a server that is away is tried again; ms since the epoch. Told once, not with every try. */
  retryUntil: z.int().nonnegative().optional(),
});
export type ErrorBody = z.infer<typeof ErrorBody>;
