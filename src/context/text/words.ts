/**
 * The words of a text for indexing and queries, in lower case and without accents. English words lose their endings, and
 * stop words are dropped. Text in scripts without spaces is cut into pairs of characters, the usual way to search it
 * without a dictionary.
 */
const UNSPACED =
  '\\p{scx=Han}\\p{scx=Hiragana}\\p{scx=Katakana}\\p{scx=Hangul}\\p{scx=Thai}\\p{scx=Lao}\\p{scx=Khmer}\\p{scx=Myanmar}';
const WORD = '[\\p{L}\\p{M}\\p{N}]';
const RUN = new RegExp(`(?<unspaced>[${WORD}&&[${UNSPACED}]]+)|[${WORD}--[${UNSPACED}]]+`, 'gv');
const ACCENTS = /[\u0300-\u036f]/g;

/** Maximum characters of a word. Longer runs are keys, hashes and encoded data, and are cut here. */
const MAX_WORD_CHARS = 64;

const STOP_WORDS: ReadonlySet<string> = new Set(
  (
    'a an and are as at be been but by can could d did do does for from had has have he her him his how i if in ' +
    'into is it its ll m me my no not of on or our re s she so t than that the their them then there these they ' +
    'this those to up us ve was we were what when where which who whom whose why will with would you your'
  ).split(' '),
);

export function plainText(text: string): string {
  return text.normalize('NFKD').replace(ACCENTS, '').normalize('NFC').toLowerCase();
}

export function wordsOf(text: string): string[] {
  const words: string[] = [];
  for (const { 0: run, groups } of plainText(text).matchAll(RUN)) {
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

/** Removes plural endings, -ed and -ing. Does less than Porter's stemmer, with the same recall. */
function stem(form: string): string {
  const word = BASE_FORMS.get(form) ?? form;
  if (!ENGLISH.test(word)) return word;
  const single = word
    .replace(/(?<=..)ies$/, 'y')
    .replace(/(?<=ss|x|ch|sh)es$/, '')
    .replace(/(?<=[^su])s$/, '');
  const bare = single.replace(/(?=(?:ed|ing|ly)$)(?<=[aeiouy].*)(?:(?<!e)ed|ing|ly)$/, '');
  const base = bare === single ? bare : bare.replace(/([^aeiouls])\1$/, '$1');
  return base.replace(/(?<=[^aeiou])e$/, '').replace(/(?<=[^aeiou])y$/, 'i');
}

/** 32 bits of FNV-1a over code units, mixed so that the first bits are as well distributed as the last. */
export function wordHash(word: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < word.length; index += 1) {
    hash = Math.imul(hash ^ word.charCodeAt(index), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return (hash ^ (hash >>> 13)) >>> 0;
}

/** Irregular English forms, so that "who bought it?" finds "I'll buy it". Each line begins with the base form. */
const FORMS = `
become became|begin began begun|bend bent|bite bit bitten|blow blew blown|break broke broken|bring brought|build built
burn burnt|buy bought|catch caught|choose chose chosen|come came|deal dealt|dig dug|do did done does|draw drew drawn
dream dreamt|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought
find found|fly flew flown|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|get got gotten
give gave given|go went gone goes|grow grew grown|hang hung|hear heard|hide hid hidden|hold held|keep kept
know knew known|lay laid|lead led|learn learnt|leave left|lend lent|lose lost|make made|mean meant|meet met
pay paid|prove proven|ride rode ridden|ring rang rung|rise rose risen|run ran|say said|see saw seen|seek sought
sell sold|send sent|sew sewn|shake shook shaken|shine shone|shoot shot|show shown|shrink shrank shrunk|sing sang sung
sink sank sunk|sit sat|sleep slept|slide slid|speak spoke spoken|spend spent|spin spun|stand stood|steal stole stolen
stick stuck|strike struck|swear swore sworn|sweep swept|swim swam swum|swing swung|take took taken|teach taught
tear tore torn|tell told|think thought|throw threw thrown|understand understood|wake woke woken|wear wore worn
win won|withdraw withdrew withdrawn|write wrote written
child children|foot feet|half halves|knife knives|leaf leaves|life lives|man men|mouse mice|shelf shelves|tooth teeth
wife wives|wolf wolves|woman women`;

const BASE_FORMS: ReadonlyMap<string, string> = new Map(
  FORMS.trim()
    .split(/[|\n]/)
    .flatMap((line) => {
      const [base = '', ...forms] = line.split(' ');
      return forms.map((form) => [form, base] as const);
    }),
);
