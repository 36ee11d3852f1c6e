import * as z from 'zod';
import { AgentId, Mode } from './ids.ts';
import { HandoffSummary } from './message.ts';

export const ModeChangedBody = z.strictObject({ mode: Mode, run: z.string().optional() });
export const PhaseChangedBody = z.strictObject({
  phase: z.string(),
  instructions: z.string().default(''),
  /** The phase that has ended. */
  from: z.string().optional(),
  /** What came of it. */
  summary: HandoffSummary.optional(),
});
export type PhaseChangedBody = z.infer<typeof PhaseChangedBody>;

/** One step of a workflow. */
export const RunStep = z.strictObject({
  id: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, 'a step id is 1 to 64 of A-Z a-z 0-9 _ -'),
  agent: AgentId,
  /** What the agent is told. */
  brief: z.string().min(1),
  /** The phase that it begins. */
  phase: z.string().min(1).max(200).optional(),
  /** With the agent's reply, or with the tool `complete_step`; never while the agent waits for anything. */
  completeWhen: z.enum(['reply', 'tool']).default('reply'),
});
export type RunStep = z.infer<typeof RunStep>;

/** Where the run of a workflow is. */
export const RunPlace = z.strictObject({
  workflow: z.string(),
  /** The step, from 1, and how many there are. */
  number: z.int().positive(),
  of: z.int().positive(),
  id: z.string(),
  agent: AgentId,
  /** How often the run was begun or taken up again. */
  attempt: z.int().positive(),
});
export type RunPlace = z.infer<typeof RunPlace>;

/** What a run is for; `brief` is the present step of its workflow, which `status` is about. */
export const RunDirectiveBody = z.strictObject({
  run: z.string(),
  directive: z.string(),
  brief: z.string().default(''),
  status: z.enum(['active', 'completed', 'failed']).default('active'),
  /** Of a workflow that Troupe runs. */
  step: RunPlace.optional(),
  /** All of its steps, where it begins: what is done next does not hang on anybody's agents file. */
  steps: z.array(RunStep).optional(),
  /** Of a failure: why, and what a person can do to go on. */
  reason: z.string().optional(),
  goOn: z.string().optional(),
});
export type RunDirectiveBody = z.infer<typeof RunDirectiveBody>;

/** What bounds the work of agents among themselves. */
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

/** Something was stopped: which guard, why, and what a person can do to go on. */
export const GuardStoppedBody = z.strictObject({ guard: Guard, message: z.string(), goOn: z.string() });
export type GuardStoppedBody = z.infer<typeof GuardStoppedBody>;

export const TodoItem = z.strictObject({
  text: z.string().min(1).max(500),
  status: z.enum(['pending', 'active', 'done', 'dropped']),
});
export type TodoItem = z.infer<typeof TodoItem>;
/** An agent's whole list, as it stands from here on. */
export const TodosBody = z.strictObject({
  items: z.array(TodoItem).max(100),
  /** The list is only set up: the turn may end with it open. */
  later: z.boolean().default(false),
});
export type TodosBody = z.infer<typeof TodosBody>;

/** Messages that a running turn took in between two of its steps; `step` is the first that sees them. */
export const TurnSteeredBody = z.strictObject({
  step: z.int().nonnegative(),
  /** Head of the log as far as it was looked at. */
  upTo: z.int().nonnegative(),
  inputs: z.array(z.int().positive()).min(1),
});
export type TurnSteeredBody = z.infer<typeof TurnSteeredBody>;

/** What becomes of a message to an agent at work. */
export const BusyPolicy = z.enum(['queue', 'steer', 'interrupt', 'reject']);
export type BusyPolicy = z.infer<typeof BusyPolicy>;

export const ArchivedBody = z.strictObject({ reason: z.string().default('') });
