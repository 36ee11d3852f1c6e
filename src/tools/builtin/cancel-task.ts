import * as z from 'zod';
import { defineTool } from '../tool.ts';

export const cancelTask = defineTool({
  name: 'cancel_task',
  description: 'Calls off a task that you gave to another agent, and all that it has given to others for it.',
  schema: z.object({
    task: z.string().min(1).describe('Id of the task, or its beginning.'),
    reason: z.string().default(''),
  }),
  idempotent: true,
  run: ({ task, reason }) => ({ text: '', request: { kind: 'cancelTask', task, reason } }),
});
