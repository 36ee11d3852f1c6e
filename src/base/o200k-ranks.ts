import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { O200K_TOKEN_SPLIT_REGEX } from 'gpt-tokenizer/encodingParams/constants';

/**
 * The vocabulary of o200k, as `gpt-tokenizer` has it. The build replaces this file with one that holds it:
 * `scripts/bundle-parts.ts`.
 */
export interface Ranks {
  /** Bytes of each token, by rank. */
  lengths: Uint8Array;
  /** The bytes of all tokens, in the order of their ranks. */
  bytes: Uint8Array;
}

/** Splits a text into pieces. No token extends over two of them. */
export const SPLIT: RegExp = O200K_TOKEN_SPLIT_REGEX;

export function readRanks(): Ranks {
  const file = createRequire(import.meta.url).resolve('gpt-tokenizer/data/o200k_base.tiktoken');
  return parseRanks(readFileSync(file));
}

const LINE_END = 10;
const SPACE = 32;
const PADDING = 61;
const DIGITS = digitsOf('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/');

function digitsOf(alphabet: string): Uint8Array {
  const values = new Uint8Array(128);
  for (let value = 0; value < alphabet.length; value++) values[alphabet.charCodeAt(value)] = value;
  return values;
}

/**
 * Each line is a token in Base64 and its rank. All lines are decoded in one pass, because calling `Buffer.from` for
 * each takes ten times as long, and in place, because the decoded bytes are shorter than their Base64.
 */
function parseRanks(file: Uint8Array): Ranks {
  const lengths = new Uint8Array(file.length >> 3);
  let rank = 0;
  let size = 0;
  for (let at = 0; at < file.length; at++) {
    const before = size;
    let bits = 0;
    let count = 0;
    for (; file[at] !== SPACE; at++) {
      const digit = file[at]!;
      if (digit === PADDING) continue;
      bits = (bits << 6) | DIGITS[digit]!;
      count += 6;
      if (count < 8) continue;
      count -= 8;
      file[size++] = (bits >> count) & 0xff;
    }
    while (at < file.length && file[at] !== LINE_END) at += 1;
    lengths[rank++] = size - before;
  }
  return { lengths: lengths.slice(0, rank), bytes: new Uint8Array(file.subarray(0, size)) };
}
