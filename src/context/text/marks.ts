/** Matching of patterns that authors may write with look-alike and invisible characters. */

/** A class of letters: exactly one of them, or any number. */
type Piece = readonly [count: 'one' | 'many', letters: RegExp];

/** A pattern of at most 30 pieces, because each is a bit in a set of positions. */
interface Pieces {
  letters: readonly RegExp[];
  /** Bits of the pieces that may repeat or be absent. */
  many: number;
}

function piecesOf(...pieces: readonly Piece[]): Pieces {
  const many = pieces.reduce((set, [count], index) => (count === 'many' ? set | (1 << index) : set), 0);
  return { letters: pieces.map(([, letters]) => letters), many };
}

/**
 * Whether the pieces match the text from `at` on. Their classes may share letters, so all possible matches are followed
 * together, as a set of positions among the pieces. A regular expression would try one after the other and could take
 * exponential time.
 */
function followPieces(text: string, at: number, { letters, many }: Pieces): boolean {
  const end = 1 << letters.length;
  let places = withSkipped(1, many);
  for (let index = at; (places & end) === 0;) {
    const code = text.codePointAt(index);
    if (code === undefined || places === 0) return false;
    const letter = String.fromCodePoint(code);
    let after = 0;
    for (let rest = places; rest !== 0; rest &= rest - 1) {
      const place = rest & -rest;
      if (letters[31 - Math.clz32(place)]?.test(letter) === true)
        after |= (many & place) === 0 ? place << 1 : place;
    }
    places = withSkipped(after, many);
    index += letter.length;
  }
  return true;
}

function withSkipped(places: number, many: number): number {
  let all = places;
  for (let next = all | ((all & many) << 1); next !== all; next = all | ((all & many) << 1)) all = next;
  return all;
}

/** Characters that look like each sign in some script or font. They are listed because Unicode does not relate them. */
const LESS = String.raw`<\uFF1C\uFE64\u2039\u2329\u3008\u27E8\u02C2\u1438\u276C\u276E\u29FC`;
const GREATER = String.raw`>\uFF1E\uFE65\u203A\u232A\u3009\u27E9\u02C3\u1433\u276D\u276F\u29FD`;
const DASH = String.raw`\-\u2010-\u2015\u2043\u2212\u02D7\uFE58\uFE63\uFF0D`;
const OPEN = String.raw`\[\uFF3B\u2045\u2772\u27E6\u3010\u3014\u3016\u301A\uFE5D`;
const CLOSE = String.raw`\]\uFF3D\u2046\u2773\u27E7\u3011\u3015\u3017\u301B\uFE5E`;
const HASH = String.raw`#\uFF03\uFE5F\u266F`;
const AT = String.raw`@\uFF20\uFE6B`;
/** Look-alikes of Latin letters. Each matches every letter, which can only match too much. */
const LETTERS = String.raw`\u017F\u02B0-\u02B8\u0370-\u052F\u1D00-\u1DBF\u2070-\u209C\u2100-\u214F\u2160-\u217F\u24B6-\u24E9\uFF21-\uFF5A\u{1D400}-\u{1D7CB}\u{1F110}-\u{1F189}`;
const LINE_ENDS = String.raw`\n\r\v\f\u0085\u2028\u2029`;

/**
 * Invisible characters. Some of them are look-alikes of letters too, so `followPieces` matches patterns with repetitions.
 */
const HIDDEN = String.raw`\p{Cf}\p{DI}\p{M}`;
const GAP: Piece = ['many', anyOf(String.raw`\s${HIDDEN}`)];
const UNSEEN: Piece = ['many', anyOf(HIDDEN)];

/** The start of a line. Group 1 is everything before the first visible character. */
const LINE_START = String.raw`((?:^|[\v\f\u0085])[\t\p{Zs}${HIDDEN}]*)`;

function anyOf(letters: string): RegExp {
  return new RegExp(`[${letters}]`, 'iu');
}

/** Pieces that match a word and its look-alikes. */
function loose(word: string): Piece[] {
  return Array.from(word).flatMap((sign): Piece[] =>
    sign === ' ' ? [GAP] : [['one', anyOf(sign + LETTERS)], UNSEEN],
  );
}

/**
 * The marks around a text: the line `[name #key]` before it and the line `#key` after it. The key is derived from the secret
 * of the conversation, so no author knows it in advance. Look-alikes are escaped whatever their key: the six digits are only
 * the second barrier, and cost two tokens in most vocabularies.
 */
export function markEnds(head: string, key: string): [open: string, close: string] {
  return [`[${head} #${key}]\n`, `\n#${key}`];
}

export function mark(head: string, key: string, text: string): string {
  const [open, close] = markEnds(head, key);
  return open + text + close;
}

const DIGIT = String.raw`\p{N}`;
const BLANK = String.raw`\t\p{Zs}${HIDDEN}`;
const COLON = String.raw`:\uFF1A\uFE55\uFE13\u2236\uA789`;

/** Beginnings of marks: `[… #123456]`, and words with which the runtime begins a mark. */
const KEYED: Piece[][] = [
  [
    ['many', anyOf(`^${CLOSE}${LINE_ENDS}`)],
    ['one', anyOf(HASH)],
    GAP,
    ['one', anyOf(DIGIT)],
    ['many', anyOf(String.raw`${DIGIT}\s${HIDDEN}`)],
    ['one', anyOf(CLOSE)],
  ],
  ...['reminder', 'time'].map(opening),
];

function opening(word: string): Piece[] {
  return [GAP, ...loose(word), GAP, ['one', anyOf(CLOSE + HASH + DIGIT)]];
}

/** Beginnings of lines of a block: `[Ana>@bob]`, `[-> 10:12]`, and `[]` or `[10:12]` for the same speaker. */
const IN_BLOCK: Piece[][] = [
  opening('new'),
  [GAP, ['one', anyOf(DASH)], UNSEEN, ['one', anyOf(GREATER)]],
  [['many', anyOf(`^${CLOSE}${LINE_ENDS}`)], ['one', anyOf(GREATER)], GAP, ['one', anyOf(AT)]],
  [GAP, ['one', anyOf(CLOSE)]],
  [
    ['many', anyOf(String.raw`${DIGIT}\s${HIDDEN}${DASH}T`)],
    ['one', anyOf(COLON)],
    GAP,
    ['one', anyOf(DIGIT)],
    UNSEEN,
    ['one', anyOf(DIGIT)],
    ['many', anyOf(String.raw`\s${HIDDEN}Z`)],
    ['one', anyOf(CLOSE)],
  ],
];
const IN_RESULTS = KEYED.map((pieces) => piecesOf(...pieces));
const IN_WORDS = IN_BLOCK.map((pieces) => piecesOf(...pieces));
const MAYBE_CLOSING = new RegExp(`[${HASH}]`);
/** A line that ends a marked text: only the sign and a number. Invisible characters may follow, even those that are letters. */
const CLOSING = new RegExp(
  String.raw`${LINE_START}([${HASH}])(?=[${BLANK}]*${DIGIT}[^[\p{L}--[\p{DI}]]${LINE_ENDS}]*(?:$|[\v\f\u0085]))`,
  'gimv',
);

/** The line `#`, which ends a block, and `->`, which stands for the speaker addressed in the line before. */
const BARE = new RegExp(
  String.raw`${LINE_START}([${HASH}](?=[${BLANK}]*(?:$|[\v\f\u0085]))|[${DASH}](?=[${HIDDEN}]*[${GREATER}]))`,
  'gimv',
);

/** Escapes text that could pass for a mark or a fence, but not lines of attribution. For results of tools. */
export function escapeKeyed(text: string): string {
  const clean = escapeOpened(escapeFences(text), IN_RESULTS);
  return MAYBE_CLOSING.test(clean) ? clean.replace(CLOSING, '$1\\$2') : clean;
}

/** Every text that is escaped contains one of these characters. */
export const MAYBE_WORDS = new RegExp(`[${LESS}${OPEN}${HASH}${GREATER}]`);

/** Escapes text that could pass for words of the runtime. `isName`: whether a text in brackets reads as a person's name. */
export function escapeWords(text: string, isName?: (name: string) => boolean): string {
  if (!MAYBE_WORDS.test(text)) return text.toWellFormed();
  const clean = escapeOpened(escapeHeaders(escapeKeyed(text)), IN_WORDS).replace(BARE, '$1\\$2');
  return isName ? escapeBracketed(clean, isName) : clean;
}

/** A block of lines. Authors' words never begin at its margin, so its end needs no key. */
export function blockOf(lines: string, key: string): string {
  return `[new #${key}]\n${lines}\n#`;
}

const LINE_END = new RegExp(String.raw`\r\n|[${LINE_ENDS}]`, 'g');

/** A text indented for a block, so that only lines of the runtime begin at the margin. */
export function indented(text: string): string {
  return text.replace(LINE_END, '$& ');
}

/**
 * A head of the plain framing: `From Ana to @coder (10:12):` comes before somebody's words, `From Troupe:` before the
 * runtime's. Small models copy it less than marks. It has no key, so escaping is the only barrier: no line of an author may
 * begin with "from" and end with a colon.
 */
export function plainHead(who: string, time = ''): string {
  return time === '' ? `From ${who}:` : `From ${who} (${time}):`;
}

/** The name of the runtime as a speaker. No person can have it; see `people.ts`. */
export const RUNTIME = 'Troupe';

export function plainNote(text: string): string {
  return `${plainHead(RUNTIME)}\n${text}`;
}

const LINES = new RegExp(`[^${LINE_ENDS}]+`, 'gu');
const FROM = piecesOf(GAP, ...loose('from'), ['one', anyOf(String.raw`\s${HIDDEN}`)]);
const ENDS_WITH_COLON = new RegExp(String.raw`[:\uFF1A\uFE55\uFE13\u2236\uA789][\s${HIDDEN}]*$`, 'u');

/** Escapes lines that could pass for a head of the plain framing. */
export function escapeHeads(text: string): string {
  return text.replace(LINES, (line) =>
    ENDS_WITH_COLON.test(line) && followPieces(line, 0, FROM) ? `\\${line}` : line,
  );
}

/**
 * The fences of summaries and of requests for summaries. They keep an author's text from imitating the text around it.
 * The delimiter has a key derived from the conversation's secret, so no author can close a fence or open another.
 * Look-alikes are escaped too, even with invisible characters (zero-width, bidi) in them, so that no model is misled.
 */
const FENCE_TAGS = ['msg', 'missed', 'handoff', 'reminder', 'summary', 'transcript'] as const;
type FenceTag = (typeof FENCE_TAGS)[number];

const TAGS = FENCE_TAGS.map((tag) =>
  piecesOf(['many', anyOf(String.raw`\s${HIDDEN}/\uFF0F\u2044\u2215`)], ...loose(tag), ['one', anyOf(DASH)]),
);
const MAYBE_FENCE = new RegExp(`[${LESS}]`);
/** Matches the opening sign of a possible tag, if only letters of a tag or their look-alikes follow up to its dash. */
const FENCE_LOOKALIKE = new RegExp(
  String.raw`[${LESS}](?=[\s${HIDDEN}/\uFF0F\u2044\u2215${LETTERS}${FENCE_TAGS.join('')}]*[${DASH}])`,
  'giu',
);

const HEADERS = [
  piecesOf(GAP, ['one', anyOf(AT)]),
  piecesOf(GAP, ...loose('system'), GAP, ['one', anyOf(CLOSE + DASH)]),
  piecesOf(GAP, ...loose('late result of')),
  piecesOf(
    ['many', anyOf(`^${CLOSE}${LINE_ENDS}`)],
    ['one', anyOf(DASH)],
    UNSEEN,
    ['one', anyOf(GREATER)],
    GAP,
    ['one', anyOf(AT)],
  ),
  piecesOf(['many', anyOf(`^${CLOSE}${LINE_ENDS}`)], ['one', anyOf(GREATER)], GAP, ['one', anyOf(AT)]),
];
export const MAYBE_HEADER = new RegExp(`[${OPEN}]`);
const ATTACHED = ['image', 'file', 'text'].map((word) =>
  piecesOf(GAP, ...loose(word), GAP, ['one', anyOf(String.raw`:\uFF1A\uFE55`)]),
);
const LINE_OPENED = new RegExp(String.raw`${LINE_START}([${OPEN}])`, 'gimu');
/** Text in brackets at the start of a line, with invisible characters. */
const BRACKETED = new RegExp(
  String.raw`${LINE_START}([${OPEN}])([^${CLOSE}${LINE_ENDS}]+)(?=[${CLOSE}])`,
  'gimu',
);

export function fence(tag: FenceTag, key: string, text: string): string {
  const [open, close] = fenceEnds(tag, key);
  return open + text + close;
}

function fenceEnds(tag: FenceTag, key: string): [open: string, close: string] {
  return [`<${tag}-${key}>\n`, `\n</${tag}-${key}>`];
}

/** Escapes text that could pass for a fence. Lone surrogates become U+FFFD, because providers refuse them. */
export function escapeFences(text: string): string {
  const clean = text.isWellFormed() ? text : text.toWellFormed();
  if (!MAYBE_FENCE.test(clean)) return clean;
  return clean.replace(FENCE_LOOKALIKE, (less, index: number) =>
    TAGS.some((tag) => followPieces(clean, index + less.length, tag)) ? `${less}\\` : less,
  );
}

/** Escapes lines of an author's own words that look like attachments. */
export function escapeAttached(text: string): string {
  return escapeOpened(text, ATTACHED);
}

/** Beginning of a line that quotes an event in a summary: `[Ana] #12`. */
const QUOTED = [
  piecesOf(['many', anyOf(`^${LINE_ENDS}`)], ['one', anyOf(CLOSE)], GAP, ['one', anyOf(HASH)], GAP, [
    'one',
    anyOf(String.raw`\p{N}`),
  ]),
];

/** Escapes lines that could pass for a quoted event in a summary. */
export function escapeQuoted(text: string): string {
  return escapeOpened(text, QUOTED);
}

/** Escapes a bracket at the start of a line if one of these patterns follows it. */
function escapeOpened(text: string, opened: readonly Pieces[]): string {
  if (!MAYBE_HEADER.test(text)) return text;
  return text.replace(LINE_OPENED, (all, start: string, open: string, index: number) =>
    opened.some((pieces) => followPieces(text, index + all.length, pieces)) ? `${start}\\${open}` : all,
  );
}

/** Escapes text that could pass for a fence or a line of attribution. Pass `isName` if names of people are shown. */
export function escapeMarks(text: string, isName?: (name: string) => boolean): string {
  const escaped = escapeHeaders(escapeFences(text));
  return isName ? escapeBracketed(escaped, isName) : escaped;
}

/** Escapes lines that could pass for lines of an agent or the runtime. */
function escapeHeaders(text: string): string {
  return escapeOpened(text, HEADERS);
}

/** Escapes a text in brackets at the start of a line if it reads as a person's name. */
function escapeBracketed(text: string, isName: (name: string) => boolean): string {
  return text.replace(BRACKETED, (all, start: string, open: string, name: string) =>
    isName(name) ? `${start}\\${open}${name}` : all,
  );
}
