import {
  anyOf,
  AT,
  CLOSE,
  DASH,
  followPieces,
  GAP,
  GREATER,
  HASH,
  HIDDEN,
  LESS,
  LETTERS,
  LINE_ENDS,
  LINE_START,
  loose,
  OPEN,
  type Pieces,
  piecesOf,
  UNSEEN,
} from './look-alikes.ts';

/**
 * The fences of summaries and of requests for summaries. They keep an author's text from imitating what surrounds it.
 * The delimiter carries a key derived from the conversation's secret, so no author can close a fence or open another.
 * Look-alikes are escaped as well, so that no model or reader is misled. Invisible characters (zero-width, bidi) hide no look-alike.
 */
const FENCE_TAGS = ['msg', 'missed', 'handoff', 'reminder', 'summary', 'transcript'] as const;
type FenceTag = (typeof FENCE_TAGS)[number];

const TAGS = FENCE_TAGS.map((tag) =>
  piecesOf(['many', anyOf(String.raw`\s${HIDDEN}/\uFF0F\u2044\u2215`)], ...loose(tag), ['one', anyOf(DASH)]),
);
const MAYBE_FENCE = new RegExp(`[${LESS}]`);
/** Matches the opening sign of what may be a tag: only its letters and look-alikes follow, up to its dash. */
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
];
export const MAYBE_HEADER = new RegExp(`[${OPEN}]`);
/** The shape of attachment lines; see `messageText`. */
const ATTACHED = ['image', 'file', 'text'].map((word) =>
  piecesOf(GAP, ...loose(word), GAP, ['one', anyOf(String.raw`:\uFF1A\uFE55`)]),
);
const LINE_OPENED = new RegExp(String.raw`${LINE_START}([${OPEN}])`, 'gimu');
/** Bracketed text at the start of a line, invisible characters included. */
const BRACKETED = new RegExp(
  String.raw`${LINE_START}([${OPEN}])([^${CLOSE}${LINE_ENDS}]+)(?=[${CLOSE}])`,
  'gimu',
);

export function fence(tag: FenceTag, key: string, text: string): string {
  const [open, close] = fenceEnds(tag, key);
  return open + text + close;
}

export function fenceEnds(tag: FenceTag, key: string): [open: string, close: string] {
  return [`<${tag}-${key}>\n`, `\n</${tag}-${key}>`];
}

/** Escapes what could pass for a fence. Lone surrogates become U+FFFD, since providers refuse them. */
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

/** How a line begins that quotes an event in a summary: `[Ana] #12`. */
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
export function escapeOpened(text: string, opened: readonly Pieces[]): string {
  if (!MAYBE_HEADER.test(text)) return text;
  return text.replace(LINE_OPENED, (all, start: string, open: string, index: number) =>
    opened.some((pieces) => followPieces(text, index + all.length, pieces)) ? `${start}\\${open}` : all,
  );
}

/** Escapes what could pass for a fence or a line of attribution. Pass `isName` where names of people are shown. */
export function escapeMarks(text: string, isName?: (name: string) => boolean): string {
  const escaped = escapeHeaders(escapeFences(text));
  return isName ? escapeBracketed(escaped, isName) : escaped;
}

/** Escapes what could pass for a line that names an agent or the runtime. */
export function escapeHeaders(text: string): string {
  return escapeOpened(text, HEADERS);
}

/** Escapes a text in brackets at the start of a line if it reads as a person's name. */
export function escapeBracketed(text: string, isName: (name: string) => boolean): string {
  return text.replace(BRACKETED, (all, start: string, open: string, name: string) =>
    isName(name) ? `${start}\\${open}${name}` : all,
  );
}
