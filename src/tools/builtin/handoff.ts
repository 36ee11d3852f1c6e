import * as z from 'zod';
import { AgentId, HandoffDraft, HandoffSummary } from '../../events/index.ts';
import { defineTool, type Tool } from '../tool.ts';

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

/** `agent`: the agent must name the goal itself. Else a summary without one is completed, from the log or by a model. */
export type HandoffPolicy = 'agent' | 'extract' | 'summarise';

/** Hands the conversation to another agent. Whether that agent exists and may be handed to is the engine's to say. */
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

export const handoff = handoffTool('agent');
