import { expect, test } from 'vitest';
import { parseTroupe, type TroupeInput } from '../../src/library/config/agents-file.ts';

const KNOWN = { id: 'writer', provider: 'anthropic', model: 'claude-sonnet-4-5' } as const;
const UNKNOWN = {
  id: 'host',
  provider: 'openai-compatible',
  model: 'own-7b',
  baseUrl: 'http://127.0.0.1:1',
} as const;
const SCRIPTED = { id: 'fake', provider: 'scripted', script: { rules: [{ reply: 'hi' }] } } as const;
const PRICE = { input: 1, cacheRead: 1, cacheWrite: 1, output: 1 };

function problemsOf(input: unknown): string[] {
  try {
    parseTroupe(input);
    return [];
  } catch (error) {
    return (error as { data: { problems: string[] } }).data.problems;
  }
}

function withBudgets(budgets: TroupeInput['budgets'], agents: unknown[] = [KNOWN, UNKNOWN, SCRIPTED]) {
  return { agents, budgets };
}

test('budgets are in tokens for any model, and in dollars for models with a price', () => {
  const budgets = {
    tenant: { tokens: 5_000_000, per: 'month' },
    conversation: { tokens: 1 },
    agents: { writer: { usd: 0.5, per: 'day' }, fake: { usd: 1 } },
  } as const;
  expect(parseTroupe(withBudgets(budgets)).budgets).toEqual(budgets);
  const priced = [KNOWN, { ...UNKNOWN, price: PRICE }, SCRIPTED];
  expect(problemsOf(withBudgets({ tenant: { usd: 1 } }, priced))).toEqual([]);
});

test('a budget of an unknown agent is refused with the known ones', () => {
  expect(problemsOf(withBudgets({ agents: { wirter: { tokens: 1 } } }))).toEqual([
    'budgets.agents.wirter: there is no agent "wirter"; did you mean "writer"? known: writer, host, fake',
  ]);
});

test('dollars for a model without a price are refused, with what to do', () => {
  const problem =
    'agents[1].price: a budget in usd counts its calls, but the price of the model "own-7b" is not known: set price (input, cacheRead, cacheWrite, output, in dollars per million tokens), or give the budget in tokens';
  for (const budgets of [
    { tenant: { usd: 1 } },
    { conversation: { usd: 1 } },
    { agents: { host: { usd: 1 } } },
  ])
    expect(problemsOf(withBudgets(budgets))).toEqual([problem]);
  const summarised = { ...withBudgets({ agents: { writer: { usd: 1 } } }), context: { summariser: 'host' } };
  expect(problemsOf(summarised)).toEqual([problem]);
  expect(problemsOf(withBudgets({ agents: { writer: { usd: 1 }, host: { tokens: 1 } } }))).toEqual([]);
});

test.each([
  [{ tenant: {} }, 'budgets.tenant: a budget needs tokens or usd'],
  [{ tenant: { tokens: 0 } }, 'budgets.tenant.tokens'],
  [{ tenant: { usd: 0 } }, 'budgets.tenant.usd'],
  [{ tenant: { tokens: 1, per: 'week' } }, 'budgets.tenant.per'],
  [{ tenants: { tokens: 1 } }, 'budgets.tenants: is not a field'],
  [{ tenant: 5, agents: 5 }, 'budgets.tenant'],
])('%j is refused', (budgets, path) => {
  const problems = problemsOf(withBudgets(budgets as TroupeInput['budgets']));
  expect(problems.some((problem) => problem.startsWith(path))).toBe(true);
});
