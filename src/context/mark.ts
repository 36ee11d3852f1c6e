import { escapeBracketed, escapeFences, escapeHeaders, escapeOpened } from './fence.ts';
import {
  anyOf,
  AT,
  CLOSE,
  DASH,
  GAP,
  GREATER,
  HASH,
  HIDDEN,
  LESS,
  LINE_ENDS,
  LINE_START,
  loose,
  OPEN,
  type Piece,
  piecesOf,
  UNSEEN,
} from './look-alikes.ts';

/**
 * The marks. A line of the runtime is `[name #key]`; what it names ends with the line `#key`. The key
 * follows from the secret of the conversation, so no author knows it beforehand. Look-alikes are escaped whatever their
 * key: the six digits are the second barrier, not the first, and cost two tokens in most vocabularies.
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

/** `[… #123456]`, and the words that the runtime puts first. */
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

/** How the lines of a block begin: `[Ana>@bob]`, `[-> 10:12]`, and `[]` or `[10:12]` for the same speaker. */
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
/** A line that ends a marked text: only the sign and a number. Some invisible characters are letters. */
const CLOSING = new RegExp(
  String.raw`${LINE_START}([${HASH}])(?=[${BLANK}]*${DIGIT}[^[\p{L}--[\p{DI}]]${LINE_ENDS}]*(?:$|[\v\f\u0085]))`,
  'gimv',
);

/** The end of a block, `#`, and `->` for the speaker addressed before. */
const BARE = new RegExp(
  String.raw`${LINE_START}([${HASH}](?=[${BLANK}]*(?:$|[\v\f\u0085]))|[${DASH}](?=[${HIDDEN}]*[${GREATER}]))`,
  'gimv',
);

/** Escapes what could pass for a mark or a fence, but no lines of attribution: for results of tools. */
export function escapeKeyed(text: string): string {
  const clean = escapeOpened(escapeFences(text), IN_RESULTS);
  return MAYBE_CLOSING.test(clean) ? clean.replace(CLOSING, '$1\\$2') : clean;
}

/** Whatever is escaped begins with one of these, or has it. */
export const MAYBE_WORDS = new RegExp(`[${LESS}${OPEN}${HASH}${GREATER}]`);

/** Escapes what could pass for words of the runtime. `isName` tells whether a text in brackets reads as a person's name. */
export function escapeWords(text: string, isName?: (name: string) => boolean): string {
  if (!MAYBE_WORDS.test(text)) return text.toWellFormed();
  const clean = escapeOpened(escapeHeaders(escapeKeyed(text)), IN_WORDS).replace(BARE, '$1\\$2');
  return isName ? escapeBracketed(clean, isName) : clean;
}

/** Lines of a block. Theirs are the only ones at its margin, so its end needs no key. */
export function blockOf(lines: string, key: string): string {
  return `[new #${key}]\n${lines}\n#`;
}

const LINE_END = new RegExp(String.raw`\r\n|[${LINE_ENDS}]`, 'g');

/** A text in a block: only lines of the runtime begin at the margin. */
export function indented(text: string): string {
  return text.replace(LINE_END, '$& ');
}
