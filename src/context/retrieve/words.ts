/**
 * The words of a text for indexing and queries: lower case, without accents. English words lose their endings, and
 * stop words are dropped. Scripts without spaces are cut into pairs of characters, the usual way to search them
 * without a dictionary.
 */
const UNSPACED =
  '\\p{scx=Han}\\p{scx=Hiragana}\\p{scx=Katakana}\\p{scx=Hangul}\\p{scx=Thai}\\p{scx=Lao}\\p{scx=Khmer}\\p{scx=Myanmar}';
const WORD = '[\\p{L}\\p{M}\\p{N}]';
const RUN = new RegExp(`(?<unspaced>[${WORD}&&[${UNSPACED}]]+)|[${WORD}--[${UNSPACED}]]+`, 'gv');
const ACCENTS = /[\u0300-\u036f]/g;

/** Longer runs are keys, hashes and encoded data: their ends are not searched for. */
const MAX_WORD_CHARS = 64;

const STOP_WORDS: ReadonlySet<string> = new Set(
  (
    'a an and are as at be been but by can could d did do does for from had has have he her him his how i if in ' +
    'into is it its ll m me my no not of on or our re s she so t than that the their them then there these they ' +
    'this those to up us ve was we were what when where which who whom whose why will with would you your'
  ).split(' '),
);

export function wordsOf(text: string): string[] {
  const plain = text.normalize('NFKD').replace(ACCENTS, '').normalize('NFC').toLowerCase();
  const words: string[] = [];
  for (const { 0: run, groups } of plain.matchAll(RUN)) {
    if (groups?.['unspaced'] !== undefined) for (const pair of pairsOf(run)) words.push(pair);
    else if (!STOP_WORDS.has(run)) words.push(stem(run.slice(0, MAX_WORD_CHARS)));
  }
  return words;
}

function pairsOf(run: string): string[] {
  const characters = Array.from(run);
  if (characters.length === 1) return characters;
  return characters.slice(1).map((character, index) => `${characters[index]}${character}`);
}

const ENGLISH = /^[a-z]{4,}$/;

/** Strips plurals, -ed and -ing: less than Porter does, with the same recall. */
function stem(word: string): string {
  if (!ENGLISH.test(word)) return word;
  const single = word
    .replace(/(?<=..)ies$/, 'y')
    .replace(/(?<=ss|x|ch|sh)es$/, '')
    .replace(/(?<=[^su])s$/, '');
  const bare = single.replace(/(?=(?:ed|ing|ly)$)(?<=[aeiouy].*)(?:(?<!e)ed|ing|ly)$/, '');
  const base = bare === single ? bare : bare.replace(/([^aeiouls])\1$/, '$1');
  return base.replace(/(?<=[^aeiou])e$/, '').replace(/(?<=[^aeiou])y$/, 'i');
}
