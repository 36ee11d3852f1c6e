import { expect, test } from 'vitest';
import { lessIsBetter, person, type Scorecard, scoreScenarios } from '../../packages/evals/src/index.ts';
import { workplace } from './harness.ts';

const COMPANY = [{ id: 'a', provider: 'scripted' as const, script: { rules: [{ reply: 'Yes.' }] } }];

function scored(prices: readonly number[]): Promise<Scorecard> {
  const price = lessIsBetter((_, { seed }) => prices[seed - 1] ?? null);
  const scenario = { name: 'a question', users: person('mia').says('Well?'), claims: {} };
  return scoreScenarios(COMPANY, [scenario], { scores: { price }, repeats: prices.length });
}

test('eval compare prints what has changed, and its exit code is 1 only if a score is worse', async () => {
  using place = workplace();
  const cheap = place.write('cheap.json', await scored([1, 2, 3]));
  const dear = place.write('dear.json', await scored([11, 12, 13]));
  const worse = await place.call(['eval', 'compare', cheap, dear]);
  expect(worse.code).toBe(1);
  expect(worse.out).toMatch(
    /a question +\| price +\| 12 \[9\.52, 14\.5\] +\| 3 +\| 2 \[-0\.484, 4\.48\] +\| worse/,
  );
  const better = await place.call(['eval', 'compare', dear, cheap, '--json']);
  expect(better.code).toBe(0);
  expect(better.json).toMatchObject({ ok: true, compared: [{ score: 'price', change: 'better' }] });
});

test('eval compare refuses a file that holds no scores', async () => {
  using place = workplace();
  const other = place.write('other.json', { version: 1, scenarios: 'none' });
  const { code, json } = await place.call(['eval', 'compare', other, other, '--json']);
  expect(code).toBe(1);
  expect(json).toMatchObject({ error: { code: 'config_invalid' } });
});
