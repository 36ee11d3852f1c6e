import { expect, test } from 'vitest';
import { createTroupe, type Troupe } from '../../src/index.ts';
import { foldEvents, newProjection } from '../../src/library/projection/projection.ts';
import { createTestClock } from '../../packages/testing/src/test-clock.ts';
import { prose, SUMMARY } from '../support/compaction-stage.ts';
import { company, UMA } from '../support/company.ts';

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

const BO = { price: PRICE, contextWindow: 8_000, maxOutputTokens: 1_000 };
/** The words that came before a failure, of three tokens or so. */
const BROKEN = { after: 12, code: 'provider_overloaded' };

const sumOf = (lines: readonly { usd: number | null }[]) =>
  lines.reduce((sum, { usd }) => sum + (usd ?? 0), 0);

/** What the page shows of all turns, in its tokens. */
async function tokensOnPage(troupe: Pick<Troupe, 'events'>) {
  const { events } = await troupe.events('c', { limit: 10_000 });
  return foldEvents(newProjection('c'), events).totals.tokens;
}

test('calls that failed are told apart: with an estimate of what was heard, and free if the vendor refused unpaid', async () => {
  const clock = createTestClock();
  const rules = [
    { when: { call: 1 }, reply: 'The light is blue.', fail: BROKEN },
    { when: { call: 2 }, fail: { code: 'provider_overloaded' } },
    { reply: 'Blue.' },
  ];
  const agents = [{ id: 'bo', provider: 'scripted', model: 'bo', script: { rules }, ...BO }] as const;
  await using troupe = await createTroupe({ agents }, { clock, onWarning: () => undefined });
  await troupe.send('c', { author: UMA, to: ['bo'], content: 'Which colour?' });
  await clock.pass(60_000);
  const { total, outcomes, agents: byAgent } = await troupe.cost('c');
  expect(total).toMatchObject({ calls: 3, unknown: 0 });
  const failed = outcomes.find(({ outcome }) => outcome === 'failed');
  const answered = outcomes.find(({ outcome }) => outcome === 'answered');
  expect(failed).toMatchObject({
    calls: 2,
    usage: { input: expect.any(Number), output: expect.any(Number) },
  });
  expect(failed?.usage.output).toBeGreaterThan(0);
  expect(failed?.usd).toBeGreaterThan(0);
  expect(answered).toMatchObject({ calls: 1 });
  expect(sumOf(outcomes)).toBeCloseTo(total.usd ?? 0, 9);
  expect(sumOf(byAgent)).toBeCloseTo(total.usd ?? 0, 9);
  expect(await tokensOnPage(troupe)).toMatchObject({ input: total.usage.input, output: total.usage.output });
});

test.each([
  ['taken', SUMMARY, 'summarised'],
  ['rejected', 'no', 'summarised'],
  ['not written', null, 'failed'],
] as const)(
  'a summary that is %s counts as a call of its own, and once on the page',
  async (_, reply, outcome) => {
    const summary =
      reply === null ? { reply: 'The', fail: { after: 3, code: 'provider_truncated' } } : { reply };
    const rules = [{ when: { purpose: 'compaction' as const }, ...summary }, { reply: 'Yes.' }];
    const agents = [{ id: 'bo', provider: 'scripted', model: 'bo', script: { rules }, ...BO }] as const;
    await using troupe = await createTroupe({ agents }, { onWarning: () => undefined });
    for (let n = 1; n <= 8; n += 1) await troupe.send('c', { author: UMA, content: prose(n) });
    await troupe.ask('c', 'And now?');
    const before = await troupe.cost('c');
    expect(before.outcomes).toMatchObject([{ outcome: 'answered', calls: 1 }]);
    await troupe.command({ command: 'compact', conversation: 'c', agent: 'bo' }, UMA);
    await troupe.ask('c', 'Go on.');
    const { total, outcomes, tools } = await troupe.cost('c');
    expect(outcomes.find((each) => each.outcome === 'answered')).toMatchObject({ calls: 2 });
    const made = outcomes.find((each) => each.outcome === outcome);
    expect(made?.calls).toBe(1);
    expect(made?.usd).toBeGreaterThan(0);
    expect(outcomes).toHaveLength(2);
    expect(sumOf(outcomes)).toBeCloseTo(total.usd ?? 0, 9);
    expect(sumOf(tools)).toBeCloseTo((total.usd ?? 0) - (made?.usd ?? 0), 9);
    expect(await tokensOnPage(troupe)).toMatchObject({
      input: total.usage.input,
      output: total.usage.output,
    });
  },
);

test('a turn that fails or is stopped tells what it took until then', async () => {
  const rules = [
    { when: { contains: 'fail' }, reply: 'Half an answer', fail: { after: 14, code: 'provider_refused' } },
    { reply: 'A word at a time.', chunk: 1, chunkDelayMs: 3_600_000 },
  ];
  const agents = [{ id: 'bo', provider: 'scripted', model: 'bo', script: { rules }, ...BO }] as const;
  await using troupe = await createTroupe({ agents }, { onWarning: () => undefined });
  await troupe.ask('c', 'fail');
  const spoken = Promise.withResolvers<string>();
  troupe.watch((note) => {
    if (note.type === 'text') spoken.resolve(note.turn);
  });
  const stopped = troupe.ask('c', 'stop');
  await troupe.command({ command: 'abort', turn: await spoken.promise }, UMA);
  await stopped;
  const { total, outcomes } = await troupe.cost('c');
  expect(outcomes).toMatchObject([{ outcome: 'failed', calls: 2, unknown: 0 }]);
  expect(total.usd).toBeGreaterThan(0);
  expect(await tokensOnPage(troupe)).toMatchObject({ input: total.usage.input, output: total.usage.output });
});
