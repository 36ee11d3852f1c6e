import { afterAll, describe, expect, test } from 'vitest';
import { evals as claims } from '../../../examples/claims/claims.eval.ts';
import { evals as codeReview } from '../../../examples/code-review/code-review.eval.ts';
import { evals as researchDesk } from '../../../examples/research-desk/research-desk.eval.ts';
import { evals as supportTriage } from '../../../examples/support-triage/support-triage.eval.ts';
import type { TroupeInput } from '../../../src/library/config/agents-file.ts';
import { playToItsEnd } from '../src/play-conversation.ts';
import type { Mutant } from './mutants/mutant.ts';
import { MUTANTS as OF_CLAIMS } from './mutants/claims.ts';
import { MUTANTS as OF_CODE_REVIEW } from './mutants/code-review.ts';
import { MUTANTS as OF_RESEARCH_DESK } from './mutants/research-desk.ts';
import { MUTANTS as OF_SUPPORT_TRIAGE } from './mutants/support-triage.ts';

/**
 * Each example with one part broken: a claim of its evals must fail and tell what is wrong. `npm run evals:mutants` prints the
 * table. The evals of the intact examples run here too, because a claim that always fails catches nothing.
 */
const EXAMPLES = [
  { name: 'claims', evals: claims, mutants: OF_CLAIMS },
  { name: 'code-review', evals: codeReview, mutants: OF_CODE_REVIEW },
  { name: 'research-desk', evals: researchDesk, mutants: OF_RESEARCH_DESK },
  { name: 'support-triage', evals: supportTriage, mutants: OF_SUPPORT_TRIAGE },
];
const LEAST_MUTANTS = 10;

describe.each(EXAMPLES)('$name, with something broken', ({ evals, mutants }) => {
  const caught: string[] = [];

  test('there are enough mutants: of prompts, tools and routing', () => {
    expect(mutants.length).toBeGreaterThanOrEqual(LEAST_MUTANTS);
    const kinds = new Set(mutants.map(({ breaks }) => breaks));
    expect([...kinds]).toEqual(expect.arrayContaining(['prompt', 'tool', 'routing']));
  });

  const named = mutants.map((mutant) => [titleOf(mutant), mutant] as const);
  test.each(named)('%s', async (_, { change, caughtBy, models }) => {
    // Like `tryWith`, but only with the scenarios that make the claim.
    const broken = change(evals.company as TroupeInput);
    const scenarios = evals.scenarios.filter(({ claims }) => caughtBy in claims);
    expect(scenarios.length, caughtBy).toBeGreaterThan(0);
    const settings = { ...(models && { models }), data: 'memory' } as const;
    const results = await Promise.all(
      scenarios.map(async ({ users, claims, options }) => {
        const run = await playToItsEnd(broken, users, { ...options, ...settings });
        try {
          await claims[caughtBy]?.(run);
          return 'holds';
        } catch {
          return 'fails';
        }
      }),
    );
    expect(results).toContain('fails');
    caught.push(caughtBy);
  });

  afterAll(() => {
    console.log(`${caught.length} of ${mutants.length} mutants caught, by ${new Set(caught).size} claims`);
  });
});

function titleOf({ breaks, what, caughtBy }: Mutant): string {
  return `${breaks}: ${what} - "${caughtBy}" fails`;
}
