/** A mean with its 95 % interval. `low` and `high` are null if nothing can be said. */
export interface Estimate {
  mean: number | null;
  low: number | null;
  high: number | null;
}

const Z = 1.959963985;
/** Quantiles of Student's t at 97.5 %, for 1 to 30 degrees of freedom. */
const T = [
  12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.306, 2.26216, 2.22814, 2.20099, 2.17881,
  2.16037, 2.14479, 2.13145, 2.11991, 2.10982, 2.10092, 2.09302, 2.08596, 2.07961, 2.07387, 2.06866, 2.0639,
  2.05954, 2.05553, 2.05183, 2.04841, 2.04523, 2.04227,
];
const DIGITS = 6;

/** The share of true, with Wilson's interval: it is right for few runs too, and never outside of 0 to 1. */
export function rateOf(values: readonly boolean[]): Estimate {
  const n = values.length;
  if (n === 0) return { mean: null, low: null, high: null };
  const rate = values.filter(Boolean).length / n;
  const scale = 1 + Z ** 2 / n;
  const middle = (rate + Z ** 2 / (2 * n)) / scale;
  const half = (Z / scale) * Math.sqrt((rate * (1 - rate)) / n + Z ** 2 / (4 * n ** 2));
  return {
    mean: rounded(rate),
    low: rounded(Math.max(0, middle - half)),
    high: rounded(Math.min(1, middle + half)),
  };
}

/** The mean, with the interval of Student's t. A single number has none. */
export function meanOf(values: readonly number[]): Estimate {
  const n = values.length;
  if (n === 0) return { mean: null, low: null, high: null };
  const mean = values.reduce((sum, value) => sum + value, 0) / n;
  if (n === 1) return { mean: rounded(mean), low: null, high: null };
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const half = quantile(n - 1) * Math.sqrt(squares / (n - 1) / n);
  return { mean: rounded(mean), low: rounded(mean - half), high: rounded(mean + half) };
}

/**
 * The 95 % interval of `after - before`, from the intervals of both. For rates it is Newcombe's (1998, method 10), for means that
 * of Zou and Donner (2008). Null: one of them has no interval.
 */
export function differenceOf(before: Estimate, after: Estimate): { low: number; high: number } | null {
  const { mean: a, low: lowA, high: highA } = before;
  const { mean: b, low: lowB, high: highB } = after;
  if (a === null || b === null || lowA === null || lowB === null || highA === null || highB === null)
    return null;
  return {
    low: rounded(b - a - Math.hypot(b - lowB, highA - a)),
    high: rounded(b - a + Math.hypot(highB - b, a - lowA)),
  };
}

/** Beyond the table an expansion is right to five digits. */
function quantile(freedom: number): number {
  const known = T[freedom - 1];
  if (known !== undefined) return known;
  const first = (Z ** 3 + Z) / (4 * freedom);
  const second = (5 * Z ** 5 + 16 * Z ** 3 + 3 * Z) / (96 * freedom ** 2);
  return Z + first + second;
}

/** So that a file of scores is readable, and the same on all machines. */
function rounded(value: number): number {
  return Number(value.toPrecision(DIGITS));
}
