import * as z from 'zod';
import { JoinPolicy, Seq } from './ids.ts';

/** Tokens of one model call, or the sum over a turn. `input` includes tokens read from a cache and written to it. */
export const Usage = z.object({
  input: z.int().nonnegative(),
  output: z.int().nonnegative(),
  cacheRead: z.int().nonnegative(),
  cacheWrite: z.int().nonnegative(),
  reasoning: z.int().nonnegative(),
});
export type Usage = z.infer<typeof Usage>;

/** Live items by name, shown at the start of a turn: only those that have changed since the agent last saw them. */
export const LiveItems = z.record(z.string(), z.string());
export type LiveItems = z.infer<typeof LiveItems>;

/**
 * The start of a turn. The legal order of the events of a turn in the log:
 *   turn.started  (error | step | tool.result | handoff | message)*  turn.done | turn.failed | turn.aborted
 * `covers` of the end lists the inputs that the turn has settled. Every addressed event is in the `covers` of exactly
 * one end of a turn of its addressee (I2).
 */
export const TurnStartedBody = z.strictObject({
  upTo: z.int().nonnegative(),
  inputs: z.array(Seq),
  live: LiveItems,
  join: JoinPolicy,
  /** Id of the baseline event in force. */
  baseline: z.string(),
  /** `system`: messages of other agents that the turn does not answer have the role of the system. Default: of the user. */
  peers: z.literal('system').optional(),
  /** `plain`: the prompt names speakers in plain words. Default: by marks. */
  framing: z.literal('plain').optional(),
  /** `results`: the agent is told the results of other agents' tools and tasks. Default: only their messages. */
  sees: z.literal('results').optional(),
});
export type TurnStartedBody = z.infer<typeof TurnStartedBody>;

/** Named as in the metric `turn_part`. */
export const TimedPart = z.enum(['build', 'relief', 'admission', 'first_token', 'stream', 'back_off']);
export type TimedPart = z.infer<typeof TimedPart>;

/** Most parts of one turn that are recorded: the first ones. */
export const MAX_TIMED_PARTS = 256;

/**
 * What the time of a turn went into, for people. Each part has its name, its start in ms after `from`, and its length in
 * ms. Of a turn that several processes worked on, it has the parts of the last one. Times of tools are in their results.
 */
export const TurnTimes = z.strictObject({
  /** Ms since the epoch. */
  from: z.int().nonnegative(),
  parts: z.array(z.tuple([TimedPart, z.int().nonnegative(), z.int().nonnegative()])).max(MAX_TIMED_PARTS),
});
export type TurnTimes = z.infer<typeof TurnTimes>;

/** Model calls besides the steps, by outcome and model. */
export const OtherCalls = z.strictObject({
  /** `failed`: the call failed or was stopped, or its answer was discarded. */
  outcome: z.enum(['summarised', 'failed']),
  model: z.string(),
  calls: z.int().positive(),
  usage: Usage,
  /** No provider reported this usage: it is our own estimate, as budgets count it. */
  estimated: z.literal(true).optional(),
});
export type OtherCalls = z.infer<typeof OtherCalls>;

const Others = z.array(OtherCalls).optional();

export const TurnDoneBody = z.strictObject({
  covers: z.array(Seq),
  steps: z.int().nonnegative(),
  /** Everything that providers reported, including `others`. */
  usage: Usage,
  others: Others,
  /** Present if the reply was cut off at the agent's `maxOutputTokens`. */
  cut: z.literal('length').optional(),
  /** The last model call: its input tokens as the provider reported them, and our counts by kind of content. */
  last: z
    .strictObject({
      reported: z.int().positive(),
      kinds: z.record(z.string(), z.number().nonnegative()),
    })
    .optional(),
  times: TurnTimes.optional(),
});
export type TurnDoneBody = z.infer<typeof TurnDoneBody>;

export const TurnFailedBody = z.strictObject({
  covers: z.array(Seq),
  code: z.string(),
  message: z.string(),
  /** The unfinished reply; empty if there was none. */
  partial: z.string(),
  /** As in `turn.done`. Absent: no provider reported any. */
  usage: Usage.optional(),
  others: Others,
  times: TurnTimes.optional(),
});
export type TurnFailedBody = z.infer<typeof TurnFailedBody>;

export const TurnAbortedBody = z.strictObject({
  covers: z.array(Seq),
  by: z.string(),
  partial: z.string(),
  usage: Usage.optional(),
  others: Others,
  times: TurnTimes.optional(),
});
export type TurnAbortedBody = z.infer<typeof TurnAbortedBody>;

/** A failed model call that will be repeated, or a refusal of the runtime. For people: no prompt shows it. */
export const ErrorBody = z.strictObject({
  code: z.string(),
  message: z.string(),
  /** From 1. */
  step: z.int().positive().optional(),
  partial: z.string().optional(),
  /** End of the retries for an unreachable server, ms since the epoch. Only the first failure reports it. */
  retryUntil: z.int().nonnegative().optional(),
});
export type ErrorBody = z.infer<typeof ErrorBody>;

/** A tool call as the model wrote it. */
export const ToolCall = z.strictObject({
  id: z.string().min(1).max(256),
  name: z.string().min(1).max(256),
  /** Raw JSON text, so that a replay sends the same bytes. */
  args: z.string(),
});
export type ToolCall = z.infer<typeof ToolCall>;

/** Reasoning of a model. It is sent back only to the provider and model that signed it. */
export const Reasoning = z.strictObject({
  text: z.string(),
  signature: z.string().optional(),
  provider: z.string(),
  model: z.string(),
});
export type Reasoning = z.infer<typeof Reasoning>;

/** A model answer after which the turn continues. One `tool.result` event follows for each call. */
export const StepBody = z.strictObject({
  index: z.int().nonnegative(),
  content: z.string(),
  calls: z.array(ToolCall),
  reasoning: Reasoning.optional(),
});
export type StepBody = z.infer<typeof StepBody>;

/**
 * `lost`: the call started, and it is unknown whether it ended. It must not be repeated blindly.
 * `waiting`: the call has not run, because a person has to approve it first.
 */
export const ToolOutcome = z.enum(['done', 'failed', 'lost', 'waiting']);
export type ToolOutcome = z.infer<typeof ToolOutcome>;

/** When a tool began, in ms since the epoch, and how long it ran. Absent if it did not run. */
export const RunTime = z.strictObject({ at: z.int().nonnegative(), ms: z.int().nonnegative() });
export type RunTime = z.infer<typeof RunTime>;

export const ToldTo = z.enum(['all', 'results']);
/** Who is told of a result besides its owner: everybody, or the agents that see results. */
export type ToldTo = z.infer<typeof ToldTo>;

/** Most characters of arguments that others are told. */
export const MAX_TOLD_ARGS = 1_000;

export const ToolResultBody = z.strictObject({
  call: z.string().min(1).max(256),
  name: z.string().min(1).max(256),
  outcome: ToolOutcome,
  /** The text that the model sees. */
  content: z.string(),
  /** Id of the complete output, if `content` is a preview. */
  artifact: z.string().optional(),
  ran: RunTime.optional(),
  /** Present if others are told of the result. `args` then has the arguments of the call, shortened. */
  told: ToldTo.optional(),
  args: z.string().optional(),
});
export type ToolResultBody = z.infer<typeof ToolResultBody>;

/** Usage of a call that cost nothing or has not begun. */
export const NO_USAGE: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

/** The tokens of both. */
export function addUsage(a: Usage, b: Usage): Usage {
  return {
    input: sum(a.input, b.input),
    output: sum(a.output, b.output),
    cacheRead: sum(a.cacheRead, b.cacheRead),
    cacheWrite: sum(a.cacheWrite, b.cacheWrite),
    reasoning: sum(a.reasoning, b.reasoning),
  };
}

/** Limited to the largest safe integer: an event with a larger number could not be read. */
function sum(a: number, b: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, a + b);
}
