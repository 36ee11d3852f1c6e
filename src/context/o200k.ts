import type { Ranks } from '../base/o200k-ranks.ts';

/**
 * Counts tokens as `gpt-tokenizer` does, over the vocabulary in flat arrays: 5 MB and some milliseconds to load. There it is a
 * string and two entries of maps for each of 200,000 tokens, which takes a hundred megabytes and half a second. Stored
 * counts come from both, so they are equal for every text, its way with byte order marks included.
 */
export function createTokenCounter(ranks: Ranks, split: RegExp): (text: string) => number {
  const rankOf = createRankTable(ranks);
  const encoder = new TextEncoder();
  let piece = new Uint8Array(1_024);
  let starts = new Int32Array(1_025);
  let pairs = new Int32Array(1_025);

  /** Writes a part of the text to `piece`, and returns its bytes. */
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

  /** Rank of the bytes of a piece in a pair of neighbours, or `NONE`. */
  function rankOfPair(start: number, end: number): number {
    const isMarked = piece[start] === 0xef && end - start > 2 && startsWithMark(piece, start);
    if (!isMarked) return rankOf(piece, start, end);
    // gpt-tokenizer decodes bytes to look them up, and the decoder takes a byte order mark away.
    return isUtf8(piece, start, end) ? rankOf(piece, start + 3, end) : NONE;
  }

  /** Joins the two neighbours of the lowest rank, again and again; of equal ones, the first. */
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
    // Every character belongs to a piece, so each piece begins where the one before it ends.
    for (let start = 0; split.test(text); start = split.lastIndex) {
      const end = split.lastIndex;
      const size = encode(text, start, end);
      const isToken = rankOf(piece, 0, size) !== NONE;
      // Lone surrogates are no token, while U+FFFD, which they are encoded as, is one.
      const isOne = isToken && (size === end - start || text.slice(start, end).isWellFormed());
      tokens += isOne ? 1 : countMerged(size);
    }
    return tokens;
  };
}

/** Above every rank. */
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

/** FNV-1a, its bits mixed once more. */
const FNV_START = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = FNV_START;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, FNV_PRIME);
  return hash ^ (hash >>> 15);
}

/** Whether the bytes start with a byte order mark: gpt-tokenizer finds no token that does. */
function startsWithMark(bytes: Uint8Array, start: number): boolean {
  return bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf;
}

const strict = new TextDecoder('utf-8', { fatal: true });

function isUtf8(bytes: Uint8Array, start: number, end: number): boolean {
  try {
    strict.decode(bytes.subarray(start, end));
    return true;
  } catch {
    // Half a character.
    return false;
  }
}
