import * as z from 'zod';
import { readRanks, SPLIT, type Ranks } from '../../base/o200k-ranks.ts';
import type { PromptMessage } from '../../events/index.ts';

/**
 * Tokens of a text in o200k, the encoding of OpenAI's models since GPT-4o. Calibration corrects the count for other models.
 * Counting takes quadratic time on text without word breaks, and a microsecond for each token that is not a word, as in
 * Chinese or Base64. So a text is counted in slices. For a text that would take long, evenly spaced slices are counted, and
 * the count is extrapolated. The result is deterministic.
 */
const SLICE = 1_024;
const UNBROKEN_SLICE = 256;
/** Number of slices that are counted first, to classify a long text. */
const PROBES = 16;
/** A text with at least this many tokens per character does not consist of words. */
const DENSE = 0.4;
/** Maximum characters that are counted of a long text, and of a text that is slow to count. */
const COUNTED = 65_536;
const COUNTED_IF_SLOW = 8_192;

let counter: ((text: string) => number) | null = null;

/** Loads the vocabulary at the first count, because most commands count nothing. */
function openCounter(): (text: string) => number {
  return (counter ??= createTokenCounter(readRanks(), SPLIT));
}

export function countTokens(written: string): number {
  if (written.length <= SLICE) return written === '' ? 0 : (counter ?? openCounter())(written);
  // All lone surrogates count as U+FFFD, so texts that differ only in them are sliced in the same way.
  const text = written.toWellFormed();
  const slices = slicesOf(text);
  const counts = new Map<string, number>();
  if (text.length <= COUNTED_IF_SLOW) return countEvery(slices, 1, counts).tokens;
  const probe = countEvery(slices, Math.ceil(slices.length / PROBES), counts);
  const isSlow = probe.tokens > probe.length * DENSE || text.length < (slices.length * SLICE) / 2;
  const step = Math.ceil(text.length / (isSlow ? COUNTED_IF_SLOW : COUNTED));
  const { tokens, length } = countEvery(slices, step, counts);
  // A token has at least one byte, so the number of bytes bounds an extrapolation that is too high.
  return Math.min(Math.round((tokens * text.length) / length), Buffer.byteLength(text));
}

/** Maximum characters counted of a slow text: the probes, and the slices from which the rest is extrapolated. */
const MOST_COUNTED = PROBES * SLICE + COUNTED_IF_SLOW;
/** Counting a character may take this many times as long as other work on it, because an invented word is many tokens. */
const COUNTED_AS = 6;
const COUNT_CHARS = 32;

/** The work of counting a text of this length, in the characters of `Steps`. */
export function countingWork(length: number): number {
  return COUNT_CHARS + Math.min(length, MOST_COUNTED) * COUNTED_AS + Math.ceil(length / 16);
}

/** Counts one slice per step, from the middle of the first step. Equal slices are counted once. */
function countEvery(slices: readonly string[], step: number, counts: Map<string, number>) {
  let tokens = 0;
  let length = 0;
  const countPiece = openCounter();
  for (let index = (Math.min(step, slices.length) - 1) >> 1; index < slices.length; index += step) {
    const slice = slices[index] ?? '';
    let count = counts.get(slice);
    if (count === undefined) counts.set(slice, (count = countPiece(slice)));
    tokens += count;
    length += slice.length;
  }
  return { tokens, length };
}

function slicesOf(text: string): string[] {
  const slices: string[] = [];
  for (let start = 0; start < text.length;) {
    const end = sliceEnd(text, start);
    slices.push(text.slice(start, end));
    start = end;
  }
  return slices;
}

/**
 * The end of a slice: before a space or after a line break in its second half, if there is one. Never inside a
 * surrogate pair.
 */
function sliceEnd(text: string, start: number): number {
  if (start + SLICE >= text.length) return text.length;
  const half = text.slice(start + SLICE / 2, start + SLICE);
  const gap = Math.max(half.lastIndexOf(' '), half.lastIndexOf('\n') + 1);
  if (gap > 0) return start + SLICE / 2 + gap;
  const end = start + UNBROKEN_SLICE;
  const unit = text.charCodeAt(end - 1);
  return unit >= 0xd800 && unit <= 0xdbff ? end - 1 : end;
}

/** Estimated tokens of prose that Troupe writes itself. */
export function estimateTokens(text: string): number {
  return Math.ceil(text.length / 4);
}

/** Estimated tokens of headers, fences and reminders. Keys and times take a token for about two characters. */
export function estimateFraming(length: number): number {
  return Math.ceil(Math.max(0, length) / 2);
}

/** Estimated tokens of marks and times, which are names and digits; a token holds three digits. */
export function estimateMarks(length: number): number {
  return Math.ceil((Math.max(0, length) * 2) / 5);
}

/** Tokens that a provider adds per message. */
export const FRAME_TOKENS = 4;

/**
 * Tokens assumed for an image of any size. Anthropic documents that images over about 1,600 tokens are scaled down.
 * Newer models may count large images higher, and small images count less. Calibration corrects that.
 */
export const IMAGE_TOKENS = 1_600;

/**
 * Counts tokens exactly as `gpt-tokenizer` does, because stored counts come from both; even its handling of byte order marks
 * is the same. The vocabulary is in flat arrays here: 5 MB that load in some milliseconds. In `gpt-tokenizer` it is a string
 * and two map entries for each of 200,000 tokens, which takes a hundred megabytes and half a second.
 */
function createTokenCounter(ranks: Ranks, split: RegExp): (text: string) => number {
  const rankOf = createRankTable(ranks);
  const encoder = new TextEncoder();
  let piece = new Uint8Array(1_024);
  let starts = new Int32Array(1_025);
  let pairs = new Int32Array(1_025);

  /** Encodes a part of the text into `piece`. Returns the number of bytes. */
  function encode(text: string, start: number, end: number): number {
    if (piece.length < (end - start) * 3) {
      piece = new Uint8Array((end - start) * 3);
      starts = new Int32Array(piece.length + 1);
      pairs = new Int32Array(piece.length + 1);
    }
    for (let at = start; at < end; at++) {
      const unit = text.charCodeAt(at);
      if (unit > 0x7f) return encoder.encodeInto(text.slice(start, end), piece).written;
      piece[at - start] = unit;
    }
    return end - start;
  }

  /** Rank of the token with these bytes of the piece, or `NONE`. */
  function rankOfPair(start: number, end: number): number {
    const isMarked = piece[start] === 0xef && end - start > 2 && startsWithMark(piece, start);
    if (!isMarked) return rankOf(piece, start, end);
    // gpt-tokenizer decodes bytes to look them up, and its decoder drops a leading byte order mark.
    return isUtf8(piece, start, end) ? rankOf(piece, start + 3, end) : NONE;
  }

  /** Merges the neighbouring pair of the lowest rank, the first of equals, until no pair is a token. Returns the count. */
  function countMerged(size: number): number {
    for (let at = 0; at <= size; at++) {
      starts[at] = at;
      pairs[at] = at + 2 <= size ? rankOfPair(at, at + 2) : NONE;
    }
    for (let parts = size; ; parts--) {
      let lowest = NONE;
      let at = -1;
      for (let index = 0; index < parts - 1; index++) {
        const rank = pairs[index]!;
        if (rank >= lowest) continue;
        lowest = rank;
        at = index;
      }
      if (at < 0) return parts;
      starts.copyWithin(at + 1, at + 2, parts + 1);
      pairs.copyWithin(at, at + 1, parts);
      const last = parts - 1;
      pairs[at] = at + 2 <= last ? rankOfPair(starts[at]!, starts[at + 2]!) : NONE;
      if (at > 0) pairs[at - 1] = rankOfPair(starts[at - 1]!, starts[at + 1]!);
    }
  }

  return function countTokens(text) {
    let tokens = 0;
    split.lastIndex = 0;
    // Every character belongs to a piece, so each piece begins where the previous one ends.
    for (let start = 0; split.test(text); start = split.lastIndex) {
      const end = split.lastIndex;
      const size = encode(text, start, end);
      const isToken = rankOf(piece, 0, size) !== NONE;
      // A lone surrogate is encoded as U+FFFD, which is a token, although the surrogate is not.
      const isOne = isToken && (size === end - start || text.slice(start, end).isWellFormed());
      tokens += isOne ? 1 : countMerged(size);
    }
    return tokens;
  };
}

const NONE = 0x7fffffff;
const RANK_BITS = 18;
const SLOT_BITS = 19;
const SLOTS = 2 ** SLOT_BITS;

type RankOf = (bytes: Uint8Array, start: number, end: number) => number;

/** A hash table of all tokens, by their bytes. An entry is 14 bits of the hash and the rank, plus one. */
function createRankTable({ lengths, bytes: all }: Ranks): RankOf {
  const slots = new Int32Array(SLOTS);
  const offsets = new Int32Array(lengths.length + 1);
  const rankBits = 2 ** RANK_BITS - 1;
  for (let rank = 0, start = 0; rank < lengths.length; rank++) {
    const end = start + lengths[rank]!;
    offsets[rank + 1] = end;
    if (!startsWithMark(all, start)) {
      const hash = hashOf(all, start, end);
      let slot = hash & (SLOTS - 1);
      while (slots[slot] !== 0) slot = (slot + 1) & (SLOTS - 1);
      slots[slot] = (hash & ~rankBits) | (rank + 1);
    }
    start = end;
  }

  return function rankOf(bytes, start, end) {
    let hash = FNV_START;
    for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, FNV_PRIME);
    hash ^= hash >>> 15;
    for (let slot = hash & (SLOTS - 1); ; slot = (slot + 1) & (SLOTS - 1)) {
      const entry = slots[slot]!;
      if (entry === 0) return NONE;
      const rank = (entry & rankBits) - 1;
      if (((entry ^ hash) & ~rankBits) !== 0 || lengths[rank] !== end - start) continue;
      const from = offsets[rank]!;
      let same = 0;
      while (same < end - start && all[from + same] === bytes[start + same]) same++;
      if (same === end - start) return rank;
    }
  };
}

/** FNV-1a, with its bits mixed at the end. */
const FNV_START = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = FNV_START;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, FNV_PRIME);
  return hash ^ (hash >>> 15);
}

/** Whether the bytes start with a byte order mark. gpt-tokenizer finds no token that starts with one. */
function startsWithMark(bytes: Uint8Array, start: number): boolean {
  return bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf;
}

const strict = new TextDecoder('utf-8', { fatal: true });

function isUtf8(bytes: Uint8Array, start: number, end: number): boolean {
  try {
    strict.decode(bytes.subarray(start, end));
    return true;
  } catch {
    // The bytes end within a character.
    return false;
  }
}

/**
 * Vendors' counts differ from Troupe's by kind of content: least in prose, most in code and in calls, around which vendors
 * add tokens.
 */
const KINDS = ['prose', 'code', 'calls', 'system'] as const;
type Kind = (typeof KINDS)[number];

export const KindTokens = z.record(z.enum(KINDS), z.number().nonnegative());
export type KindTokens = z.infer<typeof KindTokens>;

export const NO_TOKENS: KindTokens = { prose: 0, code: 0, calls: 0, system: 0 };

/** The kind of a whole message, by its role, because tools mostly return code. */
export function kindOf(message: PromptMessage): Kind {
  switch (message.role) {
    case 'system':
      // A message with seqs has words of other agents, which may have the role `system`. Without seqs it is the runtime's.
      return message.seqs.length > 0 ? 'prose' : 'system';
    case 'tool':
      return 'code';
    case 'assistant':
      return message.calls ? 'calls' : 'prose';
    case 'user':
      return 'prose';
  }
}

/** Token counts of a request. `system`: tokens of the baseline, which comes before the messages. */
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
 * A model's own token count relative to Troupe's: a ratio for each kind of content, and the tokens that the provider adds
 * to every request. A Kalman filter learns them from reported usage. Each report is one equation,
 *
 *   reported = ratio of prose x prose + ratio of code x code + ... + added
 *
 * divided by `reported`, so that a report of 2,000 tokens weighs as much as one of 200,000.
 *  C1  It is pure: the same reports in the same order give the same state.
 *  C2  An implausible report changes nothing, and an outlier counts as a moderate error. Ratios stay within 0.5..3.
 */
export const Calibration = z.object({
  reports: z.int().nonnegative(),
  /** Ratios in the order of `KINDS`, then the added tokens in thousands. */
  mean: Parameters.refine((mean) => mean.every((value, index) => clamp(value, rangeOf(index)) === value)),
  spread: z.array(Parameters).length(KINDS.length + 1),
});
export type Calibration = z.infer<typeof Calibration>;

/** The last usage that the same model reported since the last compaction, with Troupe's count of that request. */
export interface UsageAnchor {
  kinds: KindTokens;
  reported: number;
}

/** Number of reports from which on a calibration is used without a safety factor. */
const CALIBRATED_AFTER = 3;
/** Safety factor before that. */
const MARGIN = 1.1;
const RATIO_RANGE = { from: 0.5, to: 3 };
/** Thousands of tokens that a provider may add. An agent harness behind it may add its own prompt and tools. */
const ADDED_RANGE = { from: 0, to: 40 };
/** Standard deviations of the parameters before any report. */
const RATIO_PRIOR = 0.3;
const ADDED_PRIOR = 1.5;
/** Standard deviation of a report for reasons outside the equation, as a share of the report. */
const NOISE = 0.02;
/** Standard deviation of a ratio from one report to the next, because content of the same kind varies. */
const DRIFT = 0.004;
/** An error of more standard deviations than this counts as an error of this many. */
const SURPRISE = 3;
/** Plausible range of reported / counted, without the tokens that the provider adds. */
const PLAUSIBLE = { from: 0.3, to: 4 };
/** Maximum share of a window that a provider may add. */
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

/** Estimates the vendor's count; never negative. `calibrated` is false while the safety factor applies. */
export function estimate(
  { reports, mean }: Calibration,
  { kinds, anchor }: { kinds: KindTokens; anchor: UsageAnchor | null },
): { tokens: number; calibrated: boolean } {
  const calibrated = reports >= CALIBRATED_AFTER;
  let grown = 0;
  let index = 0;
  for (const kind of KINDS) grown += (kinds[kind] - (anchor?.kinds[kind] ?? 0)) * (mean[index++] ?? 0);
  if (!anchor) grown += (mean[KINDS.length] ?? 0) * 1_000;
  // Without calibration the estimate errs on the high side: growth is scaled up, shrinkage is scaled down.
  const safe = calibrated ? grown : grown > 0 ? grown * MARGIN : grown / MARGIN;
  return { tokens: Math.max(0, Math.ceil((anchor?.reported ?? 0) + safe)), calibrated };
}

/**
 * The lowest plausible vendor's count for a request of `tokens` estimated tokens, of which `reported` were reported by the
 * vendor. An estimate is a reason to compact early but not to refuse: a request that may fit is sent, and its usage calibrates.
 */
export function leastEstimate(tokens: number, reported: number): number {
  const guessed = tokens - reported;
  return guessed <= 0 ? tokens : reported + Math.floor((guessed / MARGIN) * RATIO_RANGE.from);
}

/** The grown variance, at most that of the prior, so that a kind that was not seen for a million reports does not jump. */
function drift(variance: number, index: number): number {
  return Math.min(variance + DRIFT * DRIFT, Math.max(variance, priorOf(index) ** 2));
}

/**
 * Whether a report is plausible for the counted request. `window` is the model's. A harness adds at most a part of it, and
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
