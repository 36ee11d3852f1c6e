import * as z from 'zod';

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
