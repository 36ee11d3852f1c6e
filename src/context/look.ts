import unhomoglyph from 'unhomoglyph';

/** Not seen, or seen as nothing but a gap. */
const UNSEEN = /[\s\p{C}\p{DI}\u2800]/gu;

/**
 * What a text looks like, to compare: of texts that a reader takes for the same, the looks are the same. Never shown.
 * `I` and `l` look the same, and `I` is the same letter as `i`: so all three are one here.
 */
export function lookOf(text: string): string {
  const seen = text
    .normalize('NFKC')
    .replace(UNSEEN, '')
    .replace(/\P{ASCII}/gu, asLatin);
  return unhomoglyph(unhomoglyph(seen).toLowerCase()).replaceAll('i', 'l');
}

/** Some letters look like Latin ones as capitals only (`т`), others as small ones only (`υ`). */
function asLatin(letter: string): string {
  const small = unhomoglyph(letter);
  return /^\p{ASCII}+$/u.test(small) ? small : unhomoglyph(letter.toUpperCase());
}
