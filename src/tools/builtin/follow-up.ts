import * as z from 'zod';
import { defineTool } from '../tool.ts';
import { WAITING, waitingOf } from './delegate.ts';

export const followUp = defineTool({
  name: 'follow_up',
  description:
    'Says more to an agent about a task that you gave it: it goes on where it stopped, with its earlier work before its eyes. You are woken with the new result.',
  schema: z.object({
    task: z.string().min(1).describe('Id of the task, as d-1a2b3c4d5e6f, or its beginning.'),
    text: z.string().min(1),
    ...WAITING,
  }),
  idempotent: true,
  run: ({ task, text, ...waiting }) => ({
    text: '',
    request: { kind: 'followUp', task, text, ...waitingOf(waiting) },
  }),
});
