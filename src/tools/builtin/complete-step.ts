import * as z from 'zod';
import { defineTool } from '../tool.ts';

/** For steps of workflows that end with it. */
export const completeStep = defineTool({
  name: 'complete_step',
  description:
    'Says that the step of the workflow that you were given is complete. The next step begins when your turn ends and you wait for nothing.',
  schema: z.object({}),
  idempotent: true,
  run: () => 'noted: the step is complete when your turn ends',
});
