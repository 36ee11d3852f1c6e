import * as z from 'zod';
import { AgentId, HandoffDraft, HandoffSummary, TodoItem } from '../../events/index.ts';
import { defineTool, type Tool } from '../tool.ts';

export const todoTool = defineTool({
  name: 'todo',
  description:
    'Keeps your list of what is to be done: give the whole list each time. You are held to it: a turn does not end while something is pending, unless you wait for others or say `later`.',
  schema: z.object({
    items: z.array(TodoItem).max(100),
    later: z.boolean().default(false).describe('The list is only set up; it is worked on another time.'),
  }),
  idempotent: true,
  run({ items, later }) {
    const left = items.filter(({ status }) => status === 'pending' || status === 'active').length;
    return {
      text: `${items.length} items, ${left} to be done`,
      request: { kind: 'todos', items, later },
    };
  },
});

/** For workflow steps that the agent itself completes. */
export const completeStepTool = defineTool({
  name: 'complete_step',
  description:
    'Says that the step of the workflow that you were given is complete. The next step begins when your turn ends and you wait for nothing.',
  schema: z.object({}),
  idempotent: true,
  run: () => 'noted: the step is complete when your turn ends',
});

export const noResponseTool = defineTool({
  name: 'no_response',
  description: 'Ends your turn without a word, where nothing needs to be said.',
  schema: z.object({ reason: z.string().default('') }),
  idempotent: true,
  run: ({ reason }) => ({ text: 'nothing is said', request: { kind: 'noResponse', reason } }),
});

const Arguments = z.object({
  to: z.string().min(1).describe('Id of the agent who takes over.'),
  goal: HandoffSummary.shape.goal.describe('What is to be reached, in a sentence or two.'),
  done: HandoffSummary.shape.done.describe('What has been done.'),
  state: HandoffSummary.shape.state.describe('Where things stand: decisions, files, numbers.'),
  next: HandoffSummary.shape.next.describe('What the receiver should do first.'),
  openQuestions: HandoffSummary.shape.openQuestions.describe('What is undecided.'),
  artifacts: HandoffSummary.shape.artifacts.describe('Ids of the artifacts that matter.'),
  why: HandoffSummary.shape.why.describe('Why this agent.'),
});

const GoalLeftOut = Arguments.extend({
  goal: HandoffDraft.shape.goal.describe(
    'What is to be reached, in a sentence or two. Without it the summary is made from the conversation.',
  ),
});

/**
 * Completion of a summary without a goal. `agent`: none, the agent must name the goal. `extract`: the goal is taken
 * from the log. `summarise`: a model writes it.
 */
export type HandoffPolicy = 'agent' | 'extract' | 'summarise';

/** Hands the conversation to another agent. The engine decides whether that agent exists and may receive it. */
export function handoffTool(policy: HandoffPolicy): Tool {
  return defineTool({
    name: 'handoff',
    description:
      'Hands the conversation over to another agent, with a summary that opens its next prompt. Your turn ends.',
    schema: policy === 'agent' ? Arguments : GoalLeftOut,
    idempotent: true,
    run({ to, ...summary }) {
      const agent = AgentId.safeParse(to.trim().replace(/^@/, ''));
      if (!agent.success) throw new Error(`${JSON.stringify(to)} is not an agent id`);
      const request = { kind: 'handoff' as const, to: agent.data, summary };
      return {
        text: `Handed over to ${agent.data}.`,
        request: policy === 'agent' ? request : { ...request, fill: policy },
      };
    },
  });
}
