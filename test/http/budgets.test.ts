import { expect, test } from 'vitest';
import { createApp } from '../../src/http/api/index.ts';
import { openTroupe } from '../support/mode.ts';

const ANA = { kind: 'user', id: 'u1', name: 'Ana' } as const;

test('a spent budget stops the next turn with a named error, and the report shows its state', async () => {
  await using troupe = await openTroupe({
    agents: [{ id: 'p', provider: 'scripted', maxOutputTokens: 100, script: { rules: [{ reply: 'ok' }] } }],
    defaults: { respondWhenUnaddressed: 'p' },
    budgets: { conversation: { tokens: 500 }, agents: { p: { tokens: 1_000_000, per: 'day' } } },
  });
  const app = createApp(troupe, {});
  // One turn for each message: a worker that is late would answer several in one turn, within the budget.
  for (let turn = 0; turn < 5; turn++) {
    await troupe.send('c', { author: ANA, content: `message ${turn}` });
    await troupe.idle();
  }
  const { events } = await troupe.events('c');
  const failed = events.filter(({ kind }) => kind === 'turn.failed');
  expect(failed.at(-1)).toMatchObject({ body: { code: 'budget_exceeded' } });
  expect(events.some((event) => event.kind === 'guard.stopped' && event.body.guard === 'budget')).toBe(true);
  const response = await app.request('/api/budgets?conversation=c');
  const { budgets } = (await response.json()) as { budgets: Record<string, unknown>[] };
  expect(budgets).toMatchObject([
    { scope: 'conversation', id: 'c', per: 'ever', cap: { tokens: 500 } },
    { scope: 'agent', id: 'p', per: 'day', cap: { tokens: 1_000_000 } },
  ]);
  const [spent] = budgets.map((line) => (line['spent'] as { tokens: number }).tokens);
  expect(spent).toBeLessThanOrEqual(500);
  expect((await app.request('/api/budgets?conversation=%20')).status).toBe(400);
});
