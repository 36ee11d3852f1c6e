import { countTokens as countPiece } from 'gpt-tokenizer/encoding/o200k_base';

/**
 * Tokens of a text in o200k. Loading costs about 160 ms and 77 MB, so this module is imported lazily.
 * Text is counted in slices: the tokenizer is quadratic on text without word breaks (100 kB of one letter takes 4 s),
 * and it throws on text that looks like its own special tokens unless told not to.
 */
const SLICE = 2_048;
const NOTHING_SPECIAL = { disallowedSpecial: new Set<string>() };

export function countTokens(text: string): number {
  if (text.length <= SLICE) return text === '' ? 0 : countPiece(text, NOTHING_SPECIAL);
  let total = 0;
  for (let start = 0; start < text.length;) {
    const end = sliceEnd(text, start);
    total += countPiece(text.slice(start, end), NOTHING_SPECIAL);
    start = end;
  }
  return total;
}

/** At a space where there is one in the last quarter, never inside a surrogate pair. */
function sliceEnd(text: string, start: number): number {
  const limit = start + SLICE;
  if (limit >= text.length) return text.length;
  const space = text.lastIndexOf(' ', limit);
  if (space > start + SLICE * 0.75) return space;
  const unit = text.charCodeAt(limit - 1);
  return unit >= 0xd800 && unit <= 0xdbff ? limit - 1 : limit;
}
