import { expect, test } from 'vitest';
import { company } from '../support/company.ts';

const call = (name: string, args: object) => ({
  calls: [{ id: '1', name, args: JSON.stringify(args) }],
});

const PRICE = { input: 2, output: 10, cacheRead: 0.2, cacheWrite: 2.5 };
const usage = { input: 1_000, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };

test('a conversation and its threads are told in dollars by agent, tool, model and day, with what the cache saved', async () => {
  await using room = await company(['boss', 'hand'], {
    answers: {
      boss: [
        { ...call('delegate', { to: 'hand', task: 'draft' }), usage },
        { text: 'Done.', usage: { ...usage, cacheRead: 500 } },
      ],
      hand: [{ text: 'A title', usage }],
    },
    agents: { boss: { price: PRICE, tools: ['delegate'] }, hand: { price: PRICE } },
    onWarning: () => undefined,
  });
  await room.troupe.ask('c', { to: ['boss'], content: 'A title?' });
  const cost = await room.troupe.cost('c');
  expect(cost.total).toMatchObject({ calls: 3, unknown: 0, usage: { input: 3_000, cacheRead: 500 } });
  expect(cost.total.usd).toBeCloseTo(0.0051, 6);
  expect(cost.total.saved).toBeCloseTo(0.0009, 6);
  expect(cost.unknown).toEqual([]);
  const sumOf = (lines: readonly { usd: number | null }[]) =>
    lines.reduce((sum, { usd }) => sum + (usd ?? 0), 0);
  for (const lines of [cost.agents, cost.tools, cost.models, cost.days])
    expect(sumOf(lines)).toBeCloseTo(cost.total.usd ?? 0);
  expect(new Set(cost.tools.map(({ tool }) => tool))).toEqual(new Set(['delegate', null]));
});

test('without a price the dollars are null, with the reason', async () => {
  await using room = await company(['p'], {
    answers: { p: [{ text: 'Blue.', usage }] },
    onWarning: () => undefined,
  });
  await room.troupe.ask('c', 'Which colour?');
  const cost = await room.troupe.cost('c');
  expect(cost.total).toMatchObject({ usd: null, calls: 1, unknown: 1 });
  expect(cost.unknown).toMatchObject([{ agent: 'p', reason: 'no_price', calls: 1 }]);
});

test('the cost of a conversation that does not exist is refused', async () => {
  await using room = await company(['p'], {});
  await expect(room.troupe.cost('nope')).rejects.toMatchObject({ code: 'conversation_unknown' });
});
