import * as z from 'zod';

/** Tokens of one model call (or the sum over a turn). `input` includes what was read from and written to a cache. */
export const Usage = z.object({
  input: z.int().nonnegative(),
  output: z.int().nonnegative(),
  cacheRead: z.int().nonnegative(),
  cacheWrite: z.int().nonnegative(),
  reasoning: z.int().nonnegative(),
});
export type Usage = z.infer<typeof Usage>;

export const NO_USAGE: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    input: sum(a.input, b.input),
    output: sum(a.output, b.output),
    cacheRead: sum(a.cacheRead, b.cacheRead),
    cacheWrite: sum(a.cacheWrite, b.cacheWrite),
    reasoning: sum(a.reasoning, b.reasoning),
  };
}

/** Beyond it nothing is a whole number, and no event that holds it could be read. */
function sum(a: number, b: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, a + b);
}

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

/** A tool call as the model wrote it. `args` is the raw JSON text, so that a replay sends the same bytes. */
export const ToolCall = z.strictObject({
  id: z.string().min(1).max(256),
  name: z.string().min(1).max(256),
  args: z.string(),
});
export type ToolCall = z.infer<typeof ToolCall>;

/** Reasoning goes back only to the provider and model that signed it. */
export const Reasoning = z.strictObject({
  text: z.string(),
  signature: z.string().optional(),
  provider: z.string(),
  model: z.string(),
});
export type Reasoning = z.infer<typeof Reasoning>;

/** An assistant step after which the turn went on. Its results follow as `tool.result` events, one per call. */
export const StepBody = z.strictObject({
  index: z.int().nonnegative(),
  content: z.string(),
  calls: z.array(ToolCall),
  reasoning: Reasoning.optional(),
});
export type StepBody = z.infer<typeof StepBody>;

/** `lost`: the call started and nobody knows whether it ended; it must not be repeated blindly. `waiting`: it did not run; a person has to agree first. */
export const ToolOutcome = z.enum(['done', 'failed', 'lost', 'waiting']);
export type ToolOutcome = z.infer<typeof ToolOutcome>;

/** `content` is what the model is shown; where that is a preview, the whole output is in `artifact`. */
export const ToolResultBody = z.strictObject({
  call: z.string().min(1).max(256),
  name: z.string().min(1).max(256),
  outcome: ToolOutcome,
  content: z.string(),
  artifact: z.string().optional(),
});
export type ToolResultBody = z.infer<typeof ToolResultBody>;
