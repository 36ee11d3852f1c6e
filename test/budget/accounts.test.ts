import { expect, test } from 'vitest';
import { HOLD_MS } from '../../src/actors/features/budget/accounts.ts';
import { budgetReport, takeBudget } from '../../src/actors/features/budget/feature.ts';
import { TroupeError } from '../../src/base/errors.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import type { BudgetAccounts, Reserved } from '../../src/actors/features/budget/accounts.ts';
import { ACME, counted, accountsOn, NEW_YEAR, placeOf, setClock, STORES } from './stage.ts';

const DAY_MS = 86_400_000;

function tokens(count: number) {
  return { tokens: count, microUsd: 0 };
}

function ticketOf(reserved: Reserved) {
  if (!reserved.ok) throw new Error(reserved.refusal.message);
  return reserved.ticket;
}

async function tenantLine(accounts: BudgetAccounts, now = NEW_YEAR) {
  const [line] = await budgetReport(accounts, ACME, { now });
  return line;
}

for (const [name, open] of STORES) {
  test(`${name}: a reservation is held, and its cost is spent once, even if settled twice`, async () => {
    const accounts = accountsOn(await open(), { tenant: { tokens: 100 } });
    const first = await accounts.reserve(placeOf(), { id: 'a', ...tokens(60) });
    const again = await accounts.reserve(placeOf(), { id: 'a', ...tokens(70) });
    expect(await tenantLine(accounts)).toMatchObject({
      spent: { tokens: 0 },
      held: { tokens: 70 },
      free: { tokens: 30 },
    });
    for (const reserved of [first, again, again]) await accounts.settle(ticketOf(reserved), tokens(55));
    expect(await tenantLine(accounts)).toMatchObject({
      spent: { tokens: 55 },
      held: { tokens: 0 },
      free: { tokens: 45 },
    });
    const exact = ticketOf(await accounts.reserve(placeOf(), { id: 'b', ...tokens(45) }));
    expect((await accounts.reserve(placeOf(), { id: 'c', ...tokens(1) })).ok).toBe(false);
    await accounts.release(exact);
    expect((await accounts.reserve(placeOf(), { id: 'c', ...tokens(45) })).ok).toBe(true);
  });

  test(`${name}: another process sees the spending of the first, and refuses by it`, async () => {
    const store = await open();
    const [one, two] = [
      accountsOn(store, { tenant: { tokens: 100 } }),
      accountsOn(store, { tenant: { tokens: 100 } }),
    ];
    const mine = ticketOf(await one.reserve(placeOf(), { id: 'a', ...tokens(90) }));
    expect((await two.reserve(placeOf(), { id: 'b', ...tokens(20) })).ok).toBe(false);
    await one.settle(mine, tokens(10));
    // It refused by the account that it had read before.
    expect((await two.reserve(placeOf(), { id: 'b', ...tokens(90) })).ok).toBe(true);
  });
}

async function memory() {
  return STORES[1]![1]();
}

test('a call of a dead process counts in full; a late settlement changes nothing', async () => {
  const clock = setClock();
  const accounts = accountsOn(await memory(), { tenant: { tokens: 100 } }, { clock });
  const dead = ticketOf(await accounts.reserve(placeOf(), { id: 'dead', ...tokens(80) }));
  clock.set(NEW_YEAR + HOLD_MS);
  expect(await tenantLine(accounts, clock.now())).toMatchObject({
    spent: { tokens: 80 },
    held: { tokens: 0 },
  });
  expect((await accounts.reserve(placeOf(), { id: 'b', ...tokens(21) })).ok).toBe(false);
  await accounts.settle(ticketOf(await accounts.reserve(placeOf(), { id: 'b', ...tokens(20) })), tokens(20));
  await accounts.settle(dead, tokens(1));
  expect(await tenantLine(accounts, clock.now())).toMatchObject({
    spent: { tokens: 100 },
    free: { tokens: 0 },
  });
});

test.each([
  ['day', Date.UTC(2026, 0, 31, 23, 59, 59, 999), Date.UTC(2026, 1, 1)],
  ['day', Date.UTC(2028, 1, 28, 23, 59, 59, 999), Date.UTC(2028, 1, 29)],
  ['month', Date.UTC(2026, 11, 31, 23, 59, 59, 999), Date.UTC(2027, 0, 1)],
] as const)(
  'a budget per %s begins anew at midnight UTC, and a call across it is of the day it began',
  async (per, before, after) => {
    const clock = setClock(before);
    const accounts = accountsOn(await memory(), { tenant: { tokens: 100, per } }, { clock });
    const across = ticketOf(await accounts.reserve(placeOf(), { id: 'a', ...tokens(100) }));
    expect((await accounts.reserve(placeOf(), { id: 'b', ...tokens(1) })).ok).toBe(false);
    expect(await tenantLine(accounts, before)).toMatchObject({ until: after });
    clock.set(after);
    const fresh = ticketOf(await accounts.reserve(placeOf(), { id: 'b', ...tokens(100) }));
    await accounts.settle(across, tokens(70));
    await accounts.settle(fresh, tokens(5));
    expect(await tenantLine(accounts, after)).toMatchObject({ spent: { tokens: 5 }, free: { tokens: 95 } });
    clock.set(before);
    expect(await tenantLine(accounts, before)).toMatchObject({ spent: { tokens: 70 } });
  },
);

test('a budget without a period is the same next year', async () => {
  const clock = setClock();
  const accounts = accountsOn(await memory(), { tenant: { tokens: 100 } }, { clock });
  await accounts.settle(ticketOf(await accounts.reserve(placeOf(), { id: 'a', ...tokens(60) })), tokens(60));
  clock.set(NEW_YEAR + 400 * DAY_MS);
  expect((await accounts.reserve(placeOf(), { id: 'b', ...tokens(41) })).ok).toBe(false);
});

test('a refusal by one scope holds nothing in the others, and each scope has a separate account', async () => {
  const caps = { tenant: { tokens: 100 }, conversation: { tokens: 60 }, agents: { writer: { tokens: 50 } } };
  const accounts = accountsOn(await memory(), caps);
  ticketOf(await accounts.reserve(placeOf('editor', 'one'), { id: 'a', ...tokens(60) }));
  const refused = [
    await accounts.reserve(placeOf('writer', 'two'), { id: 'b', ...tokens(51) }),
    await accounts.reserve(placeOf('writer', 'one'), { id: 'c', ...tokens(1) }),
    await accounts.reserve(placeOf('writer', 'two'), { id: 'd', ...tokens(41) }),
  ];
  expect(refused.map((each) => (each.ok ? null : each.refusal.scope))).toEqual([
    { kind: 'agent', id: 'writer' },
    { kind: 'conversation', id: 'one' },
    { kind: 'tenant' },
  ]);
  const report = await budgetReport(accounts, ACME, { root: placeOf('', 'two').root, now: NEW_YEAR });
  expect(report.map(({ scope, id, held }) => [scope, id, held.tokens])).toEqual([
    ['tenant', null, 60],
    ['conversation', 'two', 0],
    ['agent', 'writer', 0],
  ]);
  expect((await accounts.reserve(placeOf('writer', 'one', 'globex'), { id: 'e', ...tokens(50) })).ok).toBe(
    true,
  );
});

test('without budgets the store is not read', async () => {
  const notes = counted(await memory());
  const accounts = accountsOn(notes, { agents: { writer: { tokens: 1 } } });
  const ticket = ticketOf(await accounts.reserve(placeOf('toString'), { id: 'a', ...tokens(1_000) }));
  await accounts.settle(ticket, tokens(1_000));
  expect([notes.reads, notes.writes, ticket.keys]).toEqual([0, 0, []]);
});

test('an unreadable account is an error, not a new account', async () => {
  const store = await memory();
  await store.compareAndSet(ACME, 'budget/tenant/ever', null, '{"spent":{"tokens":-1}}');
  const accounts = accountsOn(store, { tenant: { tokens: 1 } });
  const reserved = accounts.reserve(placeOf(), { id: 'a', ...tokens(1) });
  await expect(reserved).rejects.toMatchObject({
    code: 'store_corrupt',
    data: { key: 'budget/tenant/ever' },
  });
});

test('without the store no call is admitted, and unsettled calls stay held and are reported', async () => {
  const store = await memory();
  let isAway = false;
  const check = () => {
    if (isAway) throw new TroupeError('store_unavailable', 'away');
  };
  const notes = {
    get: async (...args: Parameters<typeof store.get>) => (check(), store.get(...args)),
    compareAndSet: async (...args: Parameters<typeof store.compareAndSet>) => (
      check(),
      store.compareAndSet(...args)
    ),
  };
  const warnings: string[] = [];
  const accounts = accountsOn(notes, { tenant: { tokens: 100 } }, { warnings });
  const ticket = ticketOf(await accounts.reserve(placeOf(), { id: 'a', ...tokens(60) }));
  isAway = true;
  await expect(accounts.reserve(placeOf(), { id: 'b', ...tokens(1) })).rejects.toMatchObject({
    code: 'store_unavailable',
  });
  await accounts.settle(ticket, tokens(5));
  expect(warnings).toHaveLength(1);
  isAway = false;
  expect(await tenantLine(accounts)).toMatchObject({ spent: { tokens: 0 }, held: { tokens: 60 } });
});

test('a refusal names the budget, its spending, and what to do', async () => {
  const caps = { tenant: { usd: 2.5, per: 'day' as const }, agents: { writer: { tokens: 1_000 } } };
  const accounts = accountsOn(await memory(), caps);
  const spent = ticketOf(
    await accounts.reserve(placeOf('editor'), { id: 'a', tokens: 10, microUsd: 2_499_990 }),
  );
  await accounts.settle(spent, { tokens: 10, microUsd: 2_499_990 });
  const messages = [
    await accounts.reserve(placeOf('editor'), { id: 'b', tokens: 10, microUsd: 11 }),
    await accounts.reserve(placeOf('writer'), { id: 'c', tokens: 5_000, microUsd: 0 }),
  ].map((each) => (each.ok ? '' : each.refusal.message));
  expect(messages).toEqual([
    'the budget of this tenant does not allow another model call: $2.50 per day (budgets.tenant.usd). $2.49999 spent, $0.00 held by calls under way, and this call may take $0.000011. raise budgets.tenant.usd in the agents file, or wait until 2026-01-02T00:00Z, then ask again',
    'the budget of @writer does not allow another model call: 1,000 tokens (budgets.agents.writer.tokens). 0 tokens spent, 0 tokens held by calls under way, and this call may take 5,000 tokens. one call alone is more than the cap: raise budgets.agents.writer.tokens in the agents file, or lower maxOutputTokens',
  ]);
});

test('a call waits if running calls may free its amount, else it is refused', async () => {
  const clock = createFakeClock(NEW_YEAR);
  const accounts = accountsOn(await memory(), { tenant: { tokens: 100 } }, { clock });
  const stop = new AbortController();
  const parts = { accounts, clock, random: () => 0.5, signal: stop.signal };
  const running = ticketOf(await accounts.reserve(placeOf(), { id: 'a', ...tokens(90) }));
  const waits = takeBudget(parts, placeOf(), { id: 'b', ...tokens(50) });
  await clock.advance(5_000);
  await accounts.settle(running, tokens(40));
  await clock.advance(1_000);
  const taken = await waits;
  expect(taken.kind).toBe('held');
  expect(await takeBudget(parts, placeOf(), { id: 'c', ...tokens(61) })).toMatchObject({ kind: 'refused' });
  const late = takeBudget(parts, placeOf(), { id: 'd', ...tokens(20) });
  await clock.advance(61_000);
  expect(await late).toMatchObject({ kind: 'refused', refusal: { isHeld: true } });
  const broken = takeBudget(parts, placeOf(), { id: 'e', ...tokens(20) });
  await clock.advance(1);
  stop.abort();
  expect(await broken).toEqual({ kind: 'aborted' });
});
