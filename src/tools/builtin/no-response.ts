import * as z from 'zod';
import { defineTool } from '../tool.ts';

export const noResponse = defineTool({
  name: 'no_response',
  description: 'Ends your turn without a word, where nothing needs to be said.',
  schema: z.object({ reason: z.string().default('') }),
  idempotent: true,
  run: ({ reason }) => ({ text: 'nothing is said', request: { kind: 'noResponse', reason } }),
});
