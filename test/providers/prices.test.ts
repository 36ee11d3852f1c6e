import fc from 'fast-check';
import { expect, test } from 'vitest';
import { NO_USAGE, type Usage } from '../../src/events/index.ts';
import { type ModelPrice, costOf, PriceSetting, PRICES_AS_OF, priceOf } from '../../src/providers/prices.ts';

const usage = (over: Partial<Usage>): Usage => ({ ...NO_USAGE, ...over });
const SONNET: PriceSetting = { input: 3, cacheRead: 0.3, cacheWrite: 3.75, output: 15 };

test.each([
  ['claude-sonnet-4-5', SONNET],
  ['us.anthropic.claude-sonnet-4-5-20250929-v1:0', SONNET],
  ['anthropic/claude-opus-5-5', { input: 4, cacheRead: 0.2, cacheWrite: 5, output: 20 }],
  ['claude-opus-5', { input: 5, cacheRead: 0.5, cacheWrite: 6.25, output: 25 }],
  ['claude-opus-4-1-20250805', { input: 15, cacheRead: 1.5, cacheWrite: 18.75, output: 75 }],
  ['claude-opus-4-7', { input: 5, cacheRead: 0.5, cacheWrite: 6.25, output: 25 }],
  ['GPT-5-mini', { input: 0.25, cacheRead: 0.025, cacheWrite: 0.25, output: 2 }],
  ['gpt-5-2025-08-07', { input: 1.25, cacheRead: 0.125, cacheWrite: 1.25, output: 10 }],
  ['deepseek/deepseek-v4-pro', { input: 1.32, cacheRead: 0.044, cacheWrite: 1.32, output: 3.96 }],
])('the price of %s is known', (model, price) => {
  expect(priceOf(model)).toEqual(price);
});

test.each(['llama3.3', 'gpt-5-pro', 'gpt-7', 'claude-opus-6', 'my-claude', 'o3-deep-research', ''])(
  'an unknown model has no price, and not a price of 0: %s',
  (model) => {
    expect(priceOf(model)).toBeNull();
  },
);

test('cache reads and writes are part of the input and have their own prices', () => {
  const million = usage({ input: 1_000_000, cacheRead: 600_000, cacheWrite: 300_000, output: 100_000 });
  expect(costOf(million, SONNET)).toBeCloseTo(0.1 * 3 + 0.6 * 0.3 + 0.3 * 3.75 + 0.1 * 15, 10);
  expect(costOf(NO_USAGE, SONNET)).toBe(0);
});

test('a prompt above the limit is paid at the long price as a whole', () => {
  const price = priceOf('gpt-6.1-sol') as ModelPrice;
  expect(price.long).toEqual({ above: 272_000, input: 4, cacheRead: 0.2, cacheWrite: 5, output: 15 });
  const of = (input: number) => costOf(usage({ input, cacheRead: 200_000, output: 1000 }), price);
  expect(of(272_000)).toBeCloseTo((72_000 * 2 + 200_000 * 0.1 + 1000 * 10) / 1e6, 10);
  expect(of(272_001)).toBeCloseTo((72_001 * 4 + 200_000 * 0.2 + 1000 * 15) / 1e6, 10);
});

test('a cost is never negative for any usage, and a cache read never costs more than fresh input', () => {
  const counts = fc.record({
    input: fc.nat(1_000_000),
    output: fc.nat(100_000),
    cacheRead: fc.nat(1_000_000),
    cacheWrite: fc.nat(1_000_000),
    reasoning: fc.nat(1000),
  });
  fc.assert(
    fc.property(counts, (counted) => {
      expect(costOf(counted, SONNET)).toBeGreaterThanOrEqual(0);
      const read = Math.min(counted.input, counted.cacheRead);
      const cached = usage({ input: counted.input, cacheRead: read });
      expect(costOf(cached, SONNET)).toBeLessThanOrEqual(costOf(usage({ input: counted.input }), SONNET));
    }),
  );
});

test('a definition may have a price, without unknown fields', () => {
  expect(PriceSetting.parse(SONNET)).toEqual(SONNET);
  expect(PriceSetting.safeParse({ ...SONNET, inptu: 1 }).success).toBe(false);
  expect(PriceSetting.safeParse({ ...SONNET, output: -1 }).success).toBe(false);
  expect(PRICES_AS_OF).toMatch(/^\d{4}-\d\d-\d\d$/);
});
