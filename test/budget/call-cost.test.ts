import fc from 'fast-check';
import { expect, test } from 'vitest';
import { amountOf, askedAmount, spentAmount } from '../../src/actors/attempt/call-cost.ts';
import { type ModelPrice, priceOf } from '../../src/providers/prices.ts';
import { NO_USAGE, type Usage } from '../../src/events/index.ts';

const SONNET = priceOf('claude-sonnet-4-5') as ModelPrice;
const ASKED = { input: 1_000, maxOutputTokens: 500 };

test('a call within its estimate never costs more than was reserved, with any cache', () => {
  const price = fc.record({
    input: fc.double({ min: 0, max: 50, noNaN: true }),
    cacheRead: fc.double({ min: 0, max: 1, noNaN: true }),
    cacheWrite: fc.double({ min: 0, max: 80, noNaN: true }),
    output: fc.double({ min: 0, max: 200, noNaN: true }),
  });
  const call = fc.record({
    input: fc.nat(2_000_000),
    cached: fc.nat(100),
    written: fc.nat(100),
    output: fc.nat(100_000),
  });
  fc.assert(
    fc.property(price, call, (raw, { input, cached, written, output }) => {
      const some = { ...raw, cacheRead: raw.input * raw.cacheRead };
      const cacheRead = Math.floor((input * cached) / 100);
      const cacheWrite = Math.floor(((input - cacheRead) * written) / 100);
      const usage: Usage = { ...NO_USAGE, input, output, cacheRead, cacheWrite };
      const asked = askedAmount({ input, maxOutputTokens: output }, some);
      const cost = amountOf(usage, some);
      expect(cost.tokens).toBe(asked.tokens);
      expect(cost.microUsd).toBeLessThanOrEqual(asked.microUsd);
      expect(Number.isSafeInteger(cost.microUsd)).toBe(true);
    }),
    { numRuns: 1_000 },
  );
});

test('reported usage counts, missing usage is estimated from request and answer, a refused call is free', () => {
  const usage = { ...NO_USAGE, input: 900, cacheRead: 800, output: 30 };
  const answered = { kind: 'answered', usage, heard: 28, reportsLater: false } as const;
  expect(spentAmount(answered, ASKED, SONNET)).toEqual({ tokens: 930, microUsd: 300 + 240 + 450 });
  const silent = { ...answered, usage: NO_USAGE };
  expect(spentAmount(silent, ASKED, SONNET)).toEqual({ tokens: 1_028, microUsd: 3_000 + 420 });
  expect(spentAmount({ ...silent, reportsLater: true }, ASKED, SONNET)).toEqual({ tokens: 0, microUsd: 0 });
  const limited = { kind: 'failed', code: 'provider_rate_limited', heard: 0 } as const;
  expect(spentAmount(limited, ASKED, SONNET)).toEqual({ tokens: 0, microUsd: 0 });
  expect(spentAmount({ ...limited, heard: 5 }, ASKED, SONNET).tokens).toBe(1_005);
  expect(spentAmount({ ...limited, code: 'provider_truncated' }, ASKED, SONNET).tokens).toBe(1_000);
  expect(spentAmount({ kind: 'aborted', heard: 7 }, ASKED, null)).toEqual({ tokens: 1_007, microUsd: 0 });
});
