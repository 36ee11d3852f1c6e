import * as z from 'zod';
import { defineTool } from '../tool.ts';

export const remind = defineTool({
  name: 'remind',
  description: 'Wakes you later with a note of yours, also if this conversation is quiet until then.',
  schema: z
    .object({
      text: z.string().min(1).describe('What you will want to know then.'),
      at: z.iso.datetime({ offset: true }).optional().describe('When, as 2026-11-21T22:05:00Z.'),
      inMinutes: z.number().positive().max(525_600).optional().describe('Or in how many minutes.'),
    })
    .refine(({ at, inMinutes }) => (at === undefined) !== (inMinutes === undefined), {
      message: 'say either when (at) or in how many minutes (inMinutes)',
    }),
  idempotent: true,
  run: ({ text, at, inMinutes = 0 }) => ({
    text: '',
    request:
      at === undefined
        ? { kind: 'remind', text, inMs: Math.ceil(inMinutes * 60_000) }
        : { kind: 'remind', text, at: Date.parse(at) },
  }),
});
