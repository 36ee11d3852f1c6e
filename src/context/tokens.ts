import { readRanks, SPLIT } from '../base/o200k-ranks.ts';
import { createTokenCounter } from './o200k.ts';

/**
 * Tokens of a text in o200k, the encoding of OpenAI's models since GPT-4o; calibration makes up for the others. Counting is
 * quadratic on text without word breaks and takes a microsecond for every token that is not a word, as in Chinese or Base64. So
 * text is counted in slices. Of a text that would take long, evenly spaced slices are counted and stand for the rest.
 * The count is deterministic.
 */
const SLICE = 1_024;
/** Length of a slice of text without word breaks. */
const UNBROKEN_SLICE = 256;
/** Slices counted first, to classify a long text. */
const PROBES = 16;
/** From this many tokens per character on, a text does not consist of words. */
const DENSE = 0.4;
/** Characters counted of a long text, and of one that is slow to count. */
const COUNTED = 65_536;
const COUNTED_IF_SLOW = 8_192;

let counter: ((text: string) => number) | null = null;

/** The vocabulary is read at the first count: most commands count nothing. */
function openCounter(): (text: string) => number {
  return (counter ??= createTokenCounter(readRanks(), SPLIT));
}

export function countTokens(written: string): number {
  if (written.length <= SLICE) return written === '' ? 0 : (counter ?? openCounter())(written);
  // Lone surrogates all count as U+FFFD, so they also give the same slices.
  const text = written.toWellFormed();
  const slices = slicesOf(text);
  const counts = new Map<string, number>();
  if (text.length <= COUNTED_IF_SLOW) return countEvery(slices, 1, counts).tokens;
  const probe = countEvery(slices, Math.ceil(slices.length / PROBES), counts);
  const isSlow = probe.tokens > probe.length * DENSE || text.length < (slices.length * SLICE) / 2;
  const step = Math.ceil(text.length / (isSlow ? COUNTED_IF_SLOW : COUNTED));
  const { tokens, length } = countEvery(slices, step, counts);
  // A token has at least one byte, but extrapolation may exceed that where almost every byte is a token.
  return Math.min(Math.round((tokens * text.length) / length), Buffer.byteLength(text));
}

/** Characters counted of a text at most: the probes, and the slices that stand for the rest. */
const MOST_COUNTED = PROBES * SLICE + COUNTED_IF_SLOW;
/** How many times as long as other work on a character counting it may take: a made-up word is many tokens. */
const COUNTED_AS = 6;
/** Fixed cost of a count, in characters. */
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

/** An estimate for prose that Troupe writes itself. */
export function estimateTokens(text: string): number {
  return Math.ceil(text.length / 4);
}

/** An estimate for headers, fences and reminders: keys and times take a token for about two characters. */
export function estimateFraming(length: number): number {
  return Math.ceil(Math.max(0, length) / 2);
}

/** An estimate for marks and times: names, and digits of which a token holds three. */
export function estimateMarks(length: number): number {
  return Math.ceil((Math.max(0, length) * 2) / 5);
}

/** A provider's overhead per message. */
export const FRAME_TOKENS = 4;

/**
 * Tokens assumed for an image of any size. Anthropic documents that images over about 1,600 tokens are scaled down.
 * Newer models may count large ones higher, and small ones count less; calibration makes up for it.
 */
export const IMAGE_TOKENS = 1_600;
