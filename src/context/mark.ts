import { escapeBracketed, escapeFences, escapeHeaders, escapeOpened } from './fence.ts';
import {
  anyOf,
  CLOSE,
  DASH,
  GAP,
  HASH,
  HIDDEN,
  LINE_ENDS,
  LINE_START,
  loose,
  type Piece,
  piecesOf,
  UNSEEN,
} from './look-alikes.ts';

/**
 * The marks from rendering 3 on. A line of the runtime is `[name #key]`; what it names ends with the line `#key`. The key
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
  ...['missed', 'reminder', 'time'].map((word): Piece[] => [
    GAP,
    ...loose(word),
    GAP,
    ['one', anyOf(CLOSE + HASH + DIGIT)],
  ]),
];
/** `[]` and `[10:12]`, with which a block goes on with the same speaker. */
const SAME_SPEAKER: Piece[][] = [
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
const IN_WORDS = SAME_SPEAKER.map((pieces) => piecesOf(...pieces));
const MAYBE_CLOSING = new RegExp(`[${HASH}]`);
/** A line that ends a marked text: only the sign and a number. Some invisible characters are letters. */
const CLOSING = new RegExp(
  String.raw`${LINE_START}([${HASH}])(?=[${BLANK}]*${DIGIT}[^[\p{L}--[\p{DI}]]${LINE_ENDS}]*(?:$|[\v\f\u0085]))`,
  'gimv',
);

/** Escapes what could pass for a mark or a fence of any rendering, but no lines of attribution: for results of tools. */
export function escapeKeyed(text: string): string {
  const clean = escapeOpened(escapeFences(text), IN_RESULTS);
  return MAYBE_CLOSING.test(clean) ? clean.replace(CLOSING, '$1\\$2') : clean;
}

/** Escapes what could pass for words of the runtime. `isName` tells whether a text in brackets reads as a person's name. */
export function escapeWords(text: string, isName?: (name: string) => boolean): string {
  const clean = escapeOpened(escapeHeaders(escapeKeyed(text)), IN_WORDS);
  return isName ? escapeBracketed(clean, isName) : clean;
}

const LINE_END = new RegExp(String.raw`\r\n|[${LINE_ENDS}]`, 'g');

/** A text in a block: only lines of the runtime begin at the margin. */
export function indented(text: string): string {
  return text.replace(LINE_END, '$& ');
}
