import * as z from 'zod';
import { defineTool } from '../tool.ts';
import { WAITING, waitingOf } from './delegate.ts';

/** Who is meant by all people here. */
export const PEOPLE = 'people';

export const ask = defineTool({
  name: 'ask',
  description:
    'Asks another agent, or the people of this conversation, a question. You are woken with the answer. An agent sees the question alone.',
  schema: z.object({
    to: z.string().min(1).default(PEOPLE).describe(`Id of an agent, or "${PEOPLE}". Default "${PEOPLE}".`),
    question: z.string().min(1),
    by: z
      .array(z.string().min(1))
      .max(50)
      .default([])
      .describe('Ids of the people who may answer. Default: all.'),
    choices: z.array(z.string().min(1)).min(2).max(20).optional().describe('Answers to choose from.'),
    ...WAITING,
  }),
  idempotent: true,
  run({ to, question, by, choices, ...waiting }) {
    const rest = waitingOf(waiting);
    if (to.trim().replace(/^@/, '') !== PEOPLE) {
      return {
        text: '',
        request: { kind: 'delegate', how: 'ask', to, task: question, force: false, ...rest },
      };
    }
    return {
      text: '',
      request: { kind: 'question', text: question, by, ...(choices && { choices }), ...rest },
    };
  },
});
