import { expect, test } from 'vitest';
import { openTroupe } from '../support/mode.ts';

const ANA = { kind: 'user', id: 'u1', name: 'Ana' } as const;
const TASKS = 100;
const CAP = 20_000;
/** Maximum tokens of one turn of a worker: its prompt and the longest answer. */
const MOST_OF_A_TURN = 1_500;

test(`${TASKS} concurrent tasks stay within their budget, and all of them end`, async () => {
  const calls = Array.from({ length: TASKS }, (_, index) => ({
    name: 'delegate',
    args: { to: 'worker', task: `please do part ${index}` },
  }));
  await using troupe = await openTroupe(
    {
      agents: [
        {
          id: 'lead',
          provider: 'scripted',
          contextWindow: 1_000_000,
          script: { rules: [{ when: { contains: 'begin' }, calls }, { reply: 'that is all' }] },
          tools: ['delegate'],
        },
        {
          id: 'worker',
          provider: 'scripted',
          maxOutputTokens: 200,
          script: { rules: [{ reply: 'a part is done', delayMs: 5 }] },
        },
      ],
      defaults: { respondWhenUnaddressed: 'lead' },
      budgets: { agents: { worker: { tokens: CAP } } },
    },
    { constants: { limits: { maxOpenTasks: TASKS } } },
  );
  await troupe.send('c', { author: ANA, content: 'begin' });
  await troupe.idle();
  const { tasks } = await troupe.tasks('c');
  const outcomes = Map.groupBy(tasks, ({ end }) => end?.outcome ?? 'open');
  const [line] = await troupe.budgets({ agent: 'worker' });
  const spent = line?.spent.tokens ?? 0;
  const done = outcomes.get('done')?.length ?? 0;
  const failed = outcomes.get('failed')?.length ?? 0;
  console.log(`${done} done, ${failed} failed for want of budget: ${spent} of ${CAP} tokens`);
  expect([done > 0, failed > 0, done + failed]).toEqual([true, true, TASKS]);
  expect(spent).toBeLessThanOrEqual(CAP + MOST_OF_A_TURN);
  expect(line?.held.tokens).toBe(0);
  const last = (await troupe.events('c', { limit: 1_000 })).events.findLast(({ kind }) => kind === 'message');
  expect(last).toMatchObject({ body: { content: 'that is all' } });
});
