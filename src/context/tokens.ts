import type * as o200k from 'gpt-tokenizer/encoding/o200k_base';
import { createRequire } from 'node:module';

type Tokenizer = typeof o200k;

/**
 * Tokens of a text in o200k. Loading takes 270 ms and 77 MB, so that is not done with the program: most commands count
 * nothing. Whoever serves loads it before; elsewhere the first text that is counted does, at once.
 * The tokenizer throws on text that looks like its own special tokens unless told not to, is quadratic on text without
 * word breaks (100 kB of one letter takes 4 s), and takes some microseconds for every token that is not a word, as in
 * Chinese or base64. So text is counted in slices, and of a text that would take long, slices in even steps are counted
 * and stand for the rest. The same text always gives the same count.
 */
const SLICE = 1_024;
/** Where nothing breaks a slice. */
const UNBROKEN_SLICE = 256;
/** Slices counted first, to see what kind of text a long one is. */
const PROBES = 16;
/** Tokens per character from which on a text is made of something else than words. */
const DENSE = 0.4;
/** Characters of a long text that are counted; the second is for text that is slow to count. */
const COUNTED = 65_536;
const COUNTED_IF_SLOW = 8_192;
const NOTHING_SPECIAL = { disallowedSpecial: new Set<string>() };

let tokenizer: Tokenizer | null = null;

/** For who serves: before they say that they are ready. A bundler finds this import, and not what is required below. */
export async function loadTokenizer(): Promise<void> {
  if (!tokenizer) remember(await import('gpt-tokenizer/encoding/o200k_base'));
}

function remember(loaded: Tokenizer): Tokenizer {
  tokenizer = loaded;
  // It remembers words it has merged, 100,000 by default; full, its memory makes it a hundred times slower.
  tokenizer.setMergeCacheSize(1_000);
  return tokenizer;
}

function tokenizerNow(): Tokenizer {
  if (tokenizer) return tokenizer;
  return remember(createRequire(import.meta.url)('gpt-tokenizer/encoding/o200k_base') as Tokenizer);
}

function countPiece(text: string): number {
  return tokenizerNow().countTokens(text, NOTHING_SPECIAL);
}

export function countTokens(written: string): number {
  if (written.length <= SLICE) return written === '' ? 0 : countPiece(written);
  // Halves of characters all become the same one anyway; so they also make the same slices.
  const text = written.toWellFormed();
  const slices = slicesOf(text);
  const counts = new Map<string, number>();
  if (text.length <= COUNTED_IF_SLOW) return countEvery(slices, 1, counts).tokens;
  const probe = countEvery(slices, Math.ceil(slices.length / PROBES), counts);
  const isSlow = probe.tokens > probe.length * DENSE || text.length < (slices.length * SLICE) / 2;
  const step = Math.ceil(text.length / (isSlow ? COUNTED_IF_SLOW : COUNTED));
  const { tokens, length } = countEvery(slices, step, counts);
  // No token is less than a byte; where almost each is one, what was counted may stand for a little too much.
  return Math.min(Math.round((tokens * text.length) / length), Buffer.byteLength(text));
}

/** From the middle of the first step on; a slice that is there again is counted once. */
function countEvery(slices: readonly string[], step: number, counts: Map<string, number>) {
  let tokens = 0;
  let length = 0;
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

/** Before a space or after a line where there is one in the second half, never inside a surrogate pair. */
function sliceEnd(text: string, start: number): number {
  if (start + SLICE >= text.length) return text.length;
  const half = text.slice(start + SLICE / 2, start + SLICE);
  const gap = Math.max(half.lastIndexOf(' '), half.lastIndexOf('\n') + 1);
  if (gap > 0) return start + SLICE / 2 + gap;
  const end = start + UNBROKEN_SLICE;
  const unit = text.charCodeAt(end - 1);
  return unit >= 0xd800 && unit <= 0xdbff ? end - 1 : end;
}

/** For prose that Troupe writes itself. */
export function estimateTokens(text: string): number {
  return Math.ceil(text.length / 4);
}

/** For headers, fences and reminders: their keys and times take a token for about every two characters. */
export function estimateFraming(length: number): number {
  return Math.ceil(Math.max(0, length) / 2);
}

/** What a provider adds to every message. */
export const FRAME_TOKENS = 4;

/**
 * For an image, whatever its size. Anthropic's documentation of its vision says that what has more than about 1,600
 * tokens is scaled down to that. Newer models may count a large picture higher, small ones are less; what providers
 * report makes up for it.
 */
export const IMAGE_TOKENS = 1_600;
