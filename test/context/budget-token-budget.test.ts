import fc from 'fast-check';
import { expect, test } from 'vitest';
import { budgetOf, TRIGGER, usageLevel, WARNING } from '../../src/context/budget/windows.ts';
import { DEFAULT_POLICY } from '../../src/context/index.ts';

test('the available and the reserved tokens make up the window, and half of it is always for the prompt', () => {
  const any = fc.oneof(
    fc.integer({ min: -100, max: 20_000_000 }),
    fc.double(),
    fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY),
  );
  fc.assert(
    fc.property(any, any, (window, maxOutputTokens) => {
      const budget = budgetOf({ window, maxOutputTokens });
      expect(budget.available + budget.reserved).toBe(budget.window);
      expect(budget.available).toBeGreaterThanOrEqual(budget.window / 2);
      expect(budget.available).toBeGreaterThan(0);
      expect(Number.isInteger(budget.reserved) && budget.reserved >= 0).toBe(true);
    }),
  );
});

test('the answer gets the tokens that the agent requests, up to half of the window', () => {
  expect(budgetOf({ window: 200_000, maxOutputTokens: 16_384 })).toEqual({
    window: 200_000,
    reserved: 16_384,
    available: 183_616,
  });
  expect(budgetOf({ window: 8_192, maxOutputTokens: 8_192 }).reserved).toBe(4_096);
});

test('the level rises at 65 % and 80 %', () => {
  expect(usageLevel(64_999, 100_000)).toEqual({ level: 'normal', percent: 64 });
  expect(usageLevel(65_000, 100_000)).toEqual({ level: 'warning', percent: 65 });
  expect(usageLevel(79_999, 100_000)).toEqual({ level: 'warning', percent: 79 });
  expect(usageLevel(80_000, 100_000)).toEqual({ level: 'critical', percent: 80 });
  expect(usageLevel(250_000, 100_000)).toEqual({ level: 'critical', percent: 250 });
  expect(usageLevel(1, 0)).toEqual({ level: 'critical', percent: 100 });
});

test('a compaction that reaches its target made progress and warns no more', () => {
  const { trigger, target, targetAfterOverflow, progress } = DEFAULT_POLICY;
  expect(trigger).toBe(TRIGGER);
  expect(targetAfterOverflow).toBeLessThan(target);
  expect(target).toBeLessThan(progress * trigger);
  expect(progress * trigger).toBeLessThan(WARNING);
});
