import * as z from 'zod';
import { defineTroupe } from '../../src/index.ts'; // from 'troupe' in your own project
import { model } from '../model.ts';
import * as scripts from './scripts.ts';

/** The lead's final answer: validated, and structured data for the reader. */
export const Verdict = z.object({
  verdict: z.enum(['approve', 'request_changes']),
  summary: z.string(),
  findings: z.array(
    z.object({
      area: z.enum(['security', 'performance', 'style']),
      line: z.string().describe('The line of the diff that it is about.'),
      what: z.string(),
      fix: z.string(),
    }),
  ),
});

const REVIEW = `You are given a diff. Report what is wrong within your field, each finding with the line it is about and a
fix, most serious first. Say so if there is nothing. Leave the other fields to your colleagues.`;

export const troupe = defineTroupe({
  agents: [
    {
      id: 'lead',
      role: 'manager',
      description: 'Has changes reviewed and decides.',
      instructions: `You are asked about a diff.
1. Note with todo: the three reviews, a follow-up, the verdict.
2. Delegate to @security, @performance and @style at once. They see their task alone: give each the whole diff in it.
3. When all three have reported, follow up once with whoever has found the most serious thing: is the proposed fix enough?
4. Mark all as done and give the verdict. Request changes if anything must be fixed before merging.`,
      tools: ['todo', 'delegate', 'follow_up'],
      reply: Verdict,
      ...model(scripts.lead),
    },
    {
      id: 'security',
      role: 'worker',
      description: 'Reviews changes for holes that somebody could use.',
      instructions: `Your field is security. ${REVIEW}`,
      ...model(scripts.security),
    },
    {
      id: 'performance',
      role: 'worker',
      description: 'Reviews changes for what they cost at run time.',
      instructions: `Your field is performance. ${REVIEW}`,
      ...model(scripts.performance),
    },
    {
      id: 'style',
      role: 'worker',
      description: 'Reviews changes for names and readability.',
      instructions: `Your field is style. ${REVIEW}`,
      ...model(scripts.style),
    },
  ],
  defaults: { respondWhenUnaddressed: 'lead' },
  // A review takes at most ten minutes.
  limits: { taskMs: 600_000 },
});
