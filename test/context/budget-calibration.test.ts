import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  Calibration,
  emptyCalibration,
  estimate,
  kindTokens,
  type KindTokens,
  NO_TOKENS,
  observe,
  sumOf,
  type UsageAnchor,
} from '../../src/context/budget/tokens.ts';

/** A vendor whose tokenizer differs from ours by kind of text, and who adds a prompt of its own. */
const RATIOS = { prose: 1.1, code: 1.35, calls: 1.5, system: 0.9 };
const ADDED = 500;

function vendor(kinds: KindTokens): number {
  const { prose, code, calls, system } = kinds;
  const own =
    prose * RATIOS.prose + code * RATIOS.code + calls * RATIOS.calls + system * RATIOS.system + ADDED;
  return Math.round(own);
}

/** A conversation that grows step by step, each step with another mix. */
const steps = fc.array(
  fc.record({
    prose: fc.integer({ min: 20, max: 2_000 }),
    code: fc.integer({ min: 0, max: 4_000 }),
    calls: fc.integer({ min: 0, max: 800 }),
  }),
  { minLength: 4, maxLength: 60 },
);

function grow(start: KindTokens, all: readonly Omit<KindTokens, 'system'>[]): KindTokens[] {
  const states: KindTokens[] = [];
  let now = start;
  for (const { prose, code, calls } of all) {
    now = { ...now, prose: now.prose + prose, code: now.code + code, calls: now.calls + calls };
    states.push(now);
  }
  return states;
}

function errorOf(tokens: number, real: number): number {
  return Math.abs(tokens - real) / real;
}

test("after three requests 95 of 100 estimates from an anchor are within 5 % of the vendor's report, and 999 of 1,000 within 12 %", () => {
  const errors: number[] = [];
  fc.assert(
    fc.property(steps, fc.integer({ min: 2_000, max: 10_000 }), (all, system) => {
      let state = emptyCalibration();
      let anchor: UsageAnchor | null = null;
      for (const [index, kinds] of grow({ ...NO_TOKENS, system }, all).entries()) {
        const reported = vendor(kinds);
        if (index >= 3) errors.push(errorOf(estimate(state, { kinds, anchor }).tokens, reported));
        anchor = { kinds, reported };
        state = observe(state, anchor);
      }
    }),
    // A statement about many: the same ones in each run.
    { seed: 5, numRuns: 2_000 },
  );
  errors.sort((a, b) => a - b);
  expect(errors[Math.floor(errors.length * 0.95)]).toBeLessThan(0.05);
  expect(errors[Math.floor(errors.length * 0.999)]).toBeLessThan(0.12);
});

test('an estimate for another mix is within 10 % after forty requests of the same model', () => {
  let state = emptyCalibration();
  const mixed = Array.from({ length: 40 }, (_, n) => ({
    prose: (n * 137) % 900,
    code: (n * 911) % 3_000,
    calls: (n * 53) % 600,
  }));
  for (const kinds of grow({ ...NO_TOKENS, system: 3_000 }, mixed))
    state = observe(state, { kinds, reported: vendor(kinds) });
  for (const other of [
    { prose: 30_000, code: 0, calls: 0, system: 3_000 },
    { prose: 1_000, code: 80_000, calls: 0, system: 3_000 },
    { prose: 1_000, code: 500, calls: 0, system: 12_000 },
  ]) {
    expect(errorOf(estimate(state, { kinds: other, anchor: null }).tokens, vendor(other))).toBeLessThan(0.1);
  }
});

test('until three reports are in, 10 % are added to the unreported part', () => {
  const kinds = { ...NO_TOKENS, prose: 1_000 };
  const start = emptyCalibration();
  expect(estimate(start, { kinds, anchor: null })).toEqual({ tokens: 1_100, calibrated: false });
  const anchor = { kinds: { ...NO_TOKENS, prose: 600 }, reported: 900 };
  expect(estimate(start, { kinds, anchor })).toEqual({ tokens: 900 + 440, calibrated: false });
  const thrice = [1, 2, 3].reduce((state) => observe(state, { kinds, reported: 1_000 }), start);
  expect(estimate(thrice, { kinds, anchor: null })).toEqual({ tokens: 1_000, calibrated: true });
});

test('tokens removed since the anchor lower the estimate, never below zero', () => {
  const thrice = [1, 2, 3].reduce(
    (state) => observe(state, { kinds: { ...NO_TOKENS, prose: 1_000 }, reported: 1_000 }),
    emptyCalibration(),
  );
  const anchor = { kinds: { ...NO_TOKENS, prose: 1_000 }, reported: 1_000 };
  const shrunk = estimate(thrice, { kinds: { ...NO_TOKENS, prose: 400 }, anchor });
  expect(shrunk.tokens).toBeGreaterThan(390);
  expect(shrunk.tokens).toBeLessThan(500);
  const odd = { kinds: { ...NO_TOKENS, prose: 90_000 }, reported: 10 };
  expect(estimate(thrice, { kinds: NO_TOKENS, anchor: odd }).tokens).toBe(0);
});

test('implausible usage teaches nothing', () => {
  const kinds = { ...NO_TOKENS, prose: 50_000 };
  const state = observe(emptyCalibration(), { kinds, reported: 55_000 });
  for (const reported of [0, -5, Number.NaN, Number.POSITIVE_INFINITY, 7, 9_000_000])
    expect(observe(state, { kinds, reported })).toBe(state);
  expect(observe(state, { kinds: NO_TOKENS, reported: 50_000 })).toBe(state);
});

test('one outlier among good reports moves the next estimate by less than 5 %', () => {
  const good = { kinds: { ...NO_TOKENS, prose: 20_000, code: 30_000, system: 4_000 }, reported: 60_000 };
  const settled = Array.from({ length: 10 }).reduce<Calibration>(
    (state) => observe(state, good),
    emptyCalibration(),
  );
  for (const reported of [17_000, 30_000, 200_000]) {
    const shaken = observe(settled, { ...good, reported });
    expect(shaken.reports).toBe(11);
    const { tokens } = estimate(shaken, { kinds: good.kinds, anchor: null });
    expect(errorOf(tokens, good.reported), `${reported}`).toBeLessThan(0.05);
  }
});

test('a permanently changed tokenizer is followed', () => {
  const kinds = { ...NO_TOKENS, prose: 20_000, code: 30_000, system: 4_000 };
  let state = emptyCalibration();
  for (let n = 0; n < 20; n += 1) state = observe(state, { kinds, reported: 55_000 });
  for (let n = 0; n < 40; n += 1) state = observe(state, { kinds, reported: 72_000 });
  expect(errorOf(estimate(state, { kinds, anchor: null }).tokens, 72_000)).toBeLessThan(0.03);
});

test('the state stays readable for any reports, with ratios within 0.5..3', () => {
  const amount = fc.integer({ min: 0, max: 2_000_000 });
  const report = fc.record({
    kinds: fc.record({ prose: amount, code: amount, calls: amount, system: amount }),
    reported: fc.oneof(fc.integer({ min: -10, max: 8_000_000 }), fc.constant(Number.NaN)),
  });
  fc.assert(
    fc.property(fc.array(report, { maxLength: 200 }), (reports) => {
      const state = reports.reduce(observe, emptyCalibration());
      expect(Calibration.parse(JSON.parse(JSON.stringify(state)))).toEqual(state);
      for (const ratio of state.mean.slice(0, 4)) {
        expect(ratio).toBeGreaterThanOrEqual(0.5);
        expect(ratio).toBeLessThanOrEqual(3);
      }
      for (const { kinds } of reports) {
        const { tokens } = estimate(state, { kinds, anchor: null });
        expect(tokens).toBeGreaterThanOrEqual(Math.floor(sumOf(kinds) * 0.5));
      }
    }),
  );
});

test('after ten thousand reports it learns as quickly as after a hundred', () => {
  const kinds = { ...NO_TOKENS, prose: 9_000, system: 1_000 };
  const after = (times: number) => {
    let state = emptyCalibration();
    for (let n = 0; n < times; n += 1) state = observe(state, { kinds, reported: 11_000 });
    return observe(state, { kinds: { ...kinds, code: 10_000 }, reported: 24_000 });
  };
  const few = estimate(after(100), { kinds, anchor: null }).tokens;
  const many = estimate(after(10_000), { kinds, anchor: null }).tokens;
  expect(errorOf(many, few)).toBeLessThan(0.02);
});

test('a damaged state is refused', () => {
  const state = emptyCalibration();
  for (const damaged of [
    {},
    null,
    { ...state, mean: [1, 1] },
    { ...state, mean: [1e9, 1, 1, 1, 0] },
    { ...state, spread: [] },
    { ...state, reports: -1 },
    { ...state, mean: [null, 1, 1, 1, 0] },
  ])
    expect(Calibration.safeParse(damaged).success).toBe(false);
});

test('messages are classified by author and kind', () => {
  const call = { id: 'c', name: 'read', args: '{}' };
  const kinds = kindTokens(
    [
      { message: { role: 'user', content: 'hi', seqs: [] }, tokens: 1 },
      { message: { role: 'assistant', content: 'yes', seqs: [] }, tokens: 2 },
      { message: { role: 'assistant', content: '', calls: [call], seqs: [] }, tokens: 4 },
      {
        message: { role: 'tool', call: 'c', name: 'read', content: 'x', failed: false, seqs: [] },
        tokens: 8,
      },
    ],
    16,
  );
  expect(kinds).toEqual({ prose: 3, calls: 4, code: 8, system: 16 });
});
