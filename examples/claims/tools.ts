import * as z from 'zod';
import { defineTool, type ToolContext } from '../../src/index.ts'; // from 'troupe' in your own project

/** A claim in the office's own records; its number is its place there, from 1. */
export interface Claim {
  person: string;
  what: string;
  paid: number;
}

type Told = ToolContext<{ claims: Claim[] }>;

export const openClaim = defineTool({
  name: 'open_claim',
  description: 'Opens a claim of the person who writes, and gives its number.',
  schema: z.object({ what: z.string().describe('What is damaged, and by what.') }),
  needs: ['claims'],
  run: ({ what }, { app, author }: Told) =>
    `claim ${app.claims.push({ person: author.id, what, paid: 0 })} is open`,
});

export const earlierClaims = defineTool({
  name: 'earlier_claims',
  description: 'Lists all claims of the person whom the work is for.',
  schema: z.object({}),
  needs: ['claims'],
  idempotent: true,
  // In the thread of a task too, the author is the person who wrote.
  run: (_, { app, author }: Told) => app.claims.filter(({ person }) => person === author.id),
});

export const pay = defineTool({
  name: 'pay',
  description: 'Pays a claim.',
  schema: z.object({ claim: z.int(), euros: z.number().positive() }),
  needs: ['claims'],
  needsApproval: { when: ({ euros }) => euros > 5_000, by: ['dana'] },
  idempotent: true,
  run({ claim, euros }, { app }: Told) {
    const found = app.claims[claim - 1];
    if (!found) throw new Error(`there is no claim ${claim}`);
    found.paid = euros;
    return `${euros} euros are paid for claim ${claim}`;
  },
});
