import * as z from 'zod';
import type { PromptMessage } from '../../events/index.ts';

/**
 * Vendors' tokenizers differ from ours by kind of content: least in prose, most in code and in calls, which they
 * frame.
 */
const KINDS = ['prose', 'code', 'calls', 'system'] as const;
type Kind = (typeof KINDS)[number];

/** Our token counts of a request, by kind. */
export const KindTokens = z.record(z.enum(KINDS), z.number().nonnegative());
export type KindTokens = z.infer<typeof KindTokens>;

export const NO_TOKENS: KindTokens = { prose: 0, code: 0, calls: 0, system: 0 };

/** One kind per message, by role alone: tools mostly return code. */
export function kindOf(message: PromptMessage): Kind {
  switch (message.role) {
    case 'system':
      // Words of other agents may have this role; those of the runtime are of no event.
      return message.seqs.length > 0 ? 'prose' : 'system';
    case 'tool':
      return 'code';
    case 'assistant':
      return message.calls ? 'calls' : 'prose';
    case 'user':
      return 'prose';
  }
}

/** `system`: tokens of the baseline, which stands before the messages. */
export function kindTokens(
  counted: Iterable<{ message: PromptMessage; tokens: number }>,
  system = 0,
): KindTokens {
  const sums = { ...NO_TOKENS, system };
  for (const { message, tokens } of counted) sums[kindOf(message)] += tokens;
  return sums;
}

export function sumOf(kinds: KindTokens): number {
  return KINDS.reduce((sum, kind) => sum + kinds[kind], 0);
}

const Parameters = z.array(z.number()).length(KINDS.length + 1);
/**
 * A model's own token count relative to ours: a ratio for each kind of content, and the tokens that the provider adds
 * to every request. A Kalman filter learns them from reported usage. Each report is one equation,
 *
 *   reported = ratio of prose x prose + ratio of code x code + ... + added
 *
 * divided by `reported`, so that a report of 2,000 tokens weighs as much as one of 200,000.
 *  C1  Pure: the same reports in the same order give the same state.
 *  C2  An implausible report changes nothing, and an outlier counts as a moderate error. Ratios stay within 0.5..3.
 */
export const Calibration = z.object({
  /** Number of reports observed. */
  reports: z.int().nonnegative(),
  /** Ratios in the order of `KINDS`, then the added tokens in thousands. */
  mean: Parameters.refine((mean) => mean.every((value, index) => clamp(value, rangeOf(index)) === value)),
  /** Covariance of `mean`. */
  spread: z.array(Parameters).length(KINDS.length + 1),
});
export type Calibration = z.infer<typeof Calibration>;

/** The last reported usage of the same model since the last compaction, with our count for that request. */
export interface UsageAnchor {
  kinds: KindTokens;
  reported: number;
}

/** Reports needed for a calibration. */
const CALIBRATED_AFTER = 3;
/** Safety factor until then. */
const MARGIN = 1.1;
const RATIO_RANGE = { from: 0.5, to: 3 };
/** In thousands of tokens. An agent harness behind a provider may add its own prompt and tools. */
const ADDED_RANGE = { from: 0, to: 40 };
/** Standard deviations of the prior. */
const RATIO_PRIOR = 0.3;
const ADDED_PRIOR = 1.5;
/** Error of a report for reasons outside the equation, as a share of it. */
const NOISE = 0.02;
/** Change from one report to the next, through other content of the same kind. Standard deviation. */
const DRIFT = 0.004;
/** A report further off than this many standard deviations counts as this far off. */
const SURPRISE = 3;
/** Plausible range of reported / counted. The provider's own tokens are allowed on top of it. */
const PLAUSIBLE = { from: 0.3, to: 4 };
/** Share of a window that a provider may add. */
const ADDED_SHARE = 0.25;

export function emptyCalibration(): Calibration {
  const mean = [...KINDS.map(() => 1), 0];
  const spread = mean.map((_, row) => mean.map((__, column) => (row !== column ? 0 : priorOf(row) ** 2)));
  return { reports: 0, mean, spread };
}

function priorOf(index: number): number {
  return index < KINDS.length ? RATIO_PRIOR : ADDED_PRIOR;
}

export function observe(state: Calibration, { kinds, reported }: UsageAnchor): Calibration {
  if (!isPlausible({ kinds, reported })) return state;
  const { mean, spread } = state;
  const row = [...KINDS.map((kind) => kinds[kind] / reported), 1_000 / reported];
  const drifted = spread.map((line, i) => line.map((value, j) => (i === j ? drift(value, i) : value)));
  const seen = drifted.map((line) => dot(line, row));
  const variance = Math.max(0, dot(seen, row)) + NOISE * NOISE;
  const bound = SURPRISE * Math.sqrt(variance);
  const surprise = clamp(1 - dot(mean, row), { from: -bound, to: bound });
  return {
    reports: state.reports + 1,
    mean: mean.map((value, i) => clamp(value + ((seen[i] ?? 0) * surprise) / variance, rangeOf(i))),
    spread: drifted.map((line, i) =>
      line.map((value, j) => value - ((seen[i] ?? 0) * (seen[j] ?? 0)) / variance),
    ),
  };
}

/** Never negative. `calibrated` is false while the safety factor applies. */
export function estimate(
  { reports, mean }: Calibration,
  { kinds, anchor }: { kinds: KindTokens; anchor: UsageAnchor | null },
): { tokens: number; calibrated: boolean } {
  const calibrated = reports >= CALIBRATED_AFTER;
  let grown = 0;
  let index = 0;
  for (const kind of KINDS) grown += (kinds[kind] - (anchor?.kinds[kind] ?? 0)) * (mean[index++] ?? 0);
  if (!anchor) grown += (mean[KINDS.length] ?? 0) * 1_000;
  // Uncertain amounts are estimated high: growth is scaled up, shrinkage down.
  const safe = calibrated ? grown : grown > 0 ? grown * MARGIN : grown / MARGIN;
  return { tokens: Math.max(0, Math.ceil((anchor?.reported ?? 0) + safe)), calibrated };
}

/**
 * The least that a request of so many estimated tokens can have by the vendor's count, `reported` of which are certain. An
 * estimate is a reason to compact early, not to refuse: what may fit is sent, and the report on it calibrates.
 */
export function leastEstimate(tokens: number, reported: number): number {
  const guessed = tokens - reported;
  return guessed <= 0 ? tokens : reported + Math.floor((guessed / MARGIN) * RATIO_RANGE.from);
}

/** Never exceeds the prior variance, so a kind seen again after a million reports does not jump. */
function drift(variance: number, index: number): number {
  return Math.min(variance + DRIFT * DRIFT, Math.max(variance, priorOf(index) ** 2));
}

/**
 * Whether a report may belong to the counted request. `window` is the model's: a harness adds at most a part of it, and
 * a larger report would make every later prompt seem too long.
 */
export function isPlausible({ kinds, reported }: UsageAnchor, window = Infinity): boolean {
  const counted = sumOf(kinds);
  if (!Number.isFinite(reported) || reported <= 0 || !Number.isFinite(counted) || counted <= 0) return false;
  const added = Math.min(ADDED_RANGE.to * 1_000, window * ADDED_SHARE);
  return reported >= counted * PLAUSIBLE.from && reported <= counted * PLAUSIBLE.to + added;
}

function rangeOf(index: number) {
  return index < KINDS.length ? RATIO_RANGE : ADDED_RANGE;
}

/** The dot product. Missing elements of `a` count as zero. */
function dot(a: readonly number[], b: readonly number[]): number {
  return b.reduce((sum, value, index) => sum + value * (a[index] ?? 0), 0);
}

function clamp(value: number, { from, to }: { from: number; to: number }): number {
  return Math.min(to, Math.max(from, value));
}
