import * as z from 'zod';
import { AgentId, Mode, Seq } from './ids.ts';
import { HandoffSummary } from './message.ts';

export const ModeChangedBody = z.strictObject({ mode: Mode, run: z.string().optional() });

export const PhaseChangedBody = z.strictObject({
  phase: z.string(),
  instructions: z.string().default(''),
  /** The phase that has ended. */
  from: z.string().optional(),
  /** Outcome of the phase that has ended. */
  summary: HandoffSummary.optional(),
});
export type PhaseChangedBody = z.infer<typeof PhaseChangedBody>;

/** One step of a workflow. */
export const RunStep = z.strictObject({
  /** Names the step within its workflow, 1 to 64 of `A-Z a-z 0-9 _ -`. */
  id: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, 'a step id is 1 to 64 of A-Z a-z 0-9 _ -'),
  /** Id of the agent that does it. */
  agent: AgentId,
  /** Instructions for the agent. */
  brief: z.string().min(1),
  /** The phase that the step begins. Default: the phase stays. */
  phase: z.string().min(1).max(200).optional(),
  /**
   * Completes with the agent's reply, or its call of `complete_step` (`tool`), but never while the agent waits for a task.
   * Default `reply`.
   */
  completeWhen: z.enum(['reply', 'tool']).default('reply'),
});
export type RunStep = z.infer<typeof RunStep>;

/** Current step of a workflow run. */
export const RunPlace = z.strictObject({
  workflow: z.string(),
  /** Number of the step, from 1. */
  number: z.int().positive(),
  /** Number of steps in all. */
  of: z.int().positive(),
  id: z.string(),
  agent: AgentId,
  /** Number of times the run was started or continued, from 1. */
  attempt: z.int().positive(),
});
export type RunPlace = z.infer<typeof RunPlace>;

/** Purpose of a run. `brief` and `status` are those of its current step. */
export const RunDirectiveBody = z.strictObject({
  run: z.string(),
  directive: z.string(),
  brief: z.string().default(''),
  status: z.enum(['active', 'completed', 'failed']).default('active'),
  /** Present if Troupe runs the workflow. */
  step: RunPlace.optional(),
  /** All steps, stored at the start of the run so that it does not depend on the agents file. */
  steps: z.array(RunStep).optional(),
  /** Cause of a failure. */
  reason: z.string().optional(),
  /** How a person can continue a failed run. */
  goOn: z.string().optional(),
});
export type RunDirectiveBody = z.infer<typeof RunDirectiveBody>;

/** Limits on what agents do without a person. */
export const Guard = z.enum([
  'hops',
  'depth',
  'cycle',
  'agent_turns',
  'duplicate',
  'fan_out',
  'tree',
  'pending',
  'steps',
  'repeats',
  'budget',
  'supervision',
]);
export type Guard = z.infer<typeof Guard>;

/** A guard has stopped an agent. `message` says why, `goOn` how a person can continue. */
export const GuardStoppedBody = z.strictObject({ guard: Guard, message: z.string(), goOn: z.string() });
export type GuardStoppedBody = z.infer<typeof GuardStoppedBody>;

export const TodoItem = z.strictObject({
  text: z.string().min(1).max(500),
  status: z.enum(['pending', 'active', 'done', 'dropped']),
});
export type TodoItem = z.infer<typeof TodoItem>;

/** The complete new list of an agent. */
export const TodosBody = z.strictObject({
  items: z.array(TodoItem).max(100),
  /** The list is for later: the turn may end with open items. */
  later: z.boolean().default(false),
});
export type TodosBody = z.infer<typeof TodosBody>;

/** Messages that a running turn took in between two steps. */
export const TurnSteeredBody = z.strictObject({
  /** Index of the first step that sees them. */
  step: z.int().nonnegative(),
  /** Last seq that was read. */
  upTo: z.int().nonnegative(),
  inputs: z.array(Seq).min(1),
});
export type TurnSteeredBody = z.infer<typeof TurnSteeredBody>;

/** How a message to an agent in a turn is handled. */
export const BusyPolicy = z.enum(['queue', 'steer', 'interrupt', 'reject']);
export type BusyPolicy = z.infer<typeof BusyPolicy>;
