import { initialTransition, setup, type SnapshotFrom, transition, assign } from 'xstate';
import type { AgentId, RunStep } from '../events/index.ts';

/**
 * One run of a workflow, as decisions only: its steps one after the other, each with one agent. The log determines the
 * state of a run, and the state determines the next step.
 *  W1  A step ends once, by a turn of the agent that has it. A turn that began before the step was requested ends nothing.
 *  W2  Every restart has a higher `attempt`, so a late result of an earlier attempt changes nothing.
 */
interface WorkflowContext {
  steps: readonly RunStep[];
  /** Number of the current step, from 1. */
  number: number;
  attempt: number;
  /** The agent that has the step: the one that the workflow names, or the one it was handed to. */
  agent: AgentId | null;
  /** Seq of the event that requested the step. */
  since: number | null;
  /** The agent has called the tool that completes the step. */
  noted: boolean;
}

export type WorkflowEvent =
  | { type: 'BEGIN'; steps: readonly RunStep[]; number: number; attempt: number }
  | { type: 'ASK'; seq: number }
  | { type: 'NOTE' }
  | { type: 'HAND_OVER'; to: AgentId; seq: number }
  | { type: 'DONE' }
  | { type: 'FAIL' }
  | { type: 'END' };

export const workflow = setup({
  types: { context: {} as WorkflowContext, events: {} as WorkflowEvent },
  guards: {
    isNewer: ({ context, event }) => event.type === 'BEGIN' && event.attempt > context.attempt,
    isOpen: ({ context }) => stepOf(context)?.completeWhen === 'tool' && !context.noted,
    isLast: ({ context }) => context.number >= context.steps.length,
  },
  actions: {
    begin: assign(({ context, event }) =>
      event.type === 'BEGIN' ? enter(event, event.number, event.attempt) : context,
    ),
    next: assign(({ context }) => enter(context, context.number + 1, context.attempt)),
    ask: assign(({ event }) => (event.type === 'ASK' ? { since: event.seq } : {})),
    note: assign({ noted: true }),
    handOver: assign(({ event }) =>
      event.type === 'HAND_OVER' ? { agent: event.to, since: event.seq } : {},
    ),
  },
}).createMachine({
  id: 'workflow',
  context: { steps: [], number: 0, attempt: 0, agent: null, since: null, noted: false },
  initial: 'unbegun',
  on: { BEGIN: { guard: 'isNewer', target: '.directed', actions: 'begin' } },
  states: {
    unbegun: {},
    directed: { on: { ASK: { target: 'asked', actions: 'ask' }, FAIL: 'failed', END: 'completed' } },
    asked: {
      on: {
        NOTE: { actions: 'note' },
        HAND_OVER: { actions: 'handOver' },
        DONE: [
          { guard: 'isOpen' },
          { guard: 'isLast', target: 'completed' },
          { target: 'directed', actions: 'next' },
        ],
        FAIL: 'failed',
        END: 'completed',
      },
    },
    failed: { on: { END: 'completed' } },
    completed: {},
  },
});

function enter({ steps }: Pick<WorkflowContext, 'steps'>, number: number, attempt: number): WorkflowContext {
  const agent = steps[number - 1]?.agent ?? null;
  return { steps, number, attempt, agent, since: null, noted: false };
}

export function stepOf({ steps, number }: Pick<WorkflowContext, 'steps' | 'number'>): RunStep | null {
  return steps[number - 1] ?? null;
}

/** The state of a run as plain data, which can be cloned; a snapshot of the machine cannot. */
export interface WorkflowState {
  value: SnapshotFrom<typeof workflow>['value'];
  context: WorkflowContext;
}

export function newWorkflow(): WorkflowState {
  const [{ value, context }] = initialTransition(workflow);
  return { value, context };
}

/** The state after an event; an event that is not accepted changes nothing. */
export function nextState(state: WorkflowState, event: WorkflowEvent): WorkflowState {
  const [{ value, context }] = transition(workflow, workflow.resolveState(state), event);
  return { value, context };
}
