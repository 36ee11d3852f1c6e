/**
 * Fences keep an author's text from imitating anything around it. The delimiter carries a key derived from the
 * conversation's secret, so no author can close a fence or open another; look-alikes are escaped all the same, so
 * that neither a model nor a reader is misled. Characters that are not seen (zero-width, bidi) hide no look-alike.
 */
const FENCE_TAGS = ['msg', 'missed', 'handoff', 'reminder', 'summary', 'transcript'] as const;
export type FenceTag = (typeof FENCE_TAGS)[number];

/** Adjacent repetitions never share a character: an author must not be able to make the search slow. */
const UNSEEN = String.raw`[\p{Cf}\p{DI}]*`;
const GAP = String.raw`[\s\p{Cf}\p{DI}]*`;
const TAGS = FENCE_TAGS.map(loose).join('|');
const FENCE_LOOKALIKE = new RegExp(
  String.raw`[<\uFF1C\uFE64](?=[\s\p{Cf}\p{DI}/\uFF0F]*(?:${TAGS})[-\u2010-\u2015])`,
  'giu',
);

const LINE_START = String.raw`(^|[\v\f\u0085])([\t\p{Zs}\p{Cf}\p{DI}]*)`;
const HEADERS = [
  String.raw`${GAP}[@\uFF20]`,
  String.raw`${GAP}${loose('system')}${GAP}[\]-]`,
  `${GAP}${loose('late result of')}`,
  String.raw`[^\]\n]{1,200}-${UNSEEN}>${GAP}[@\uFF20]`,
];
const HEADER_LOOKALIKE = new RegExp(String.raw`${LINE_START}([[\uFF3B])(?=${HEADERS.join('|')})`, 'gimu');
const BRACKETED = new RegExp(String.raw`${LINE_START}\[([^\]\n]{1,120})\]`, 'gimu');

function loose(word: string): string {
  return word.replace(/./g, (letter) => `${letter}${UNSEEN}`);
}

export function fence(tag: FenceTag, key: string, text: string): string {
  const [open, close] = fenceEnds(tag, key);
  return open + text + close;
}

export function fenceEnds(tag: FenceTag, key: string): [open: string, close: string] {
  return [`<${tag}-${key}>\n`, `\n</${tag}-${key}>`];
}

/** Text that cannot be taken for a fence. Lone surrogates become U+FFFD: providers refuse them. */
export function escapeFences(text: string): string {
  const clean = text.isWellFormed() ? text : text.toWellFormed();
  return /[<\uFF1C\uFE64]/.test(clean) ? clean.replace(FENCE_LOOKALIKE, '$&\\') : clean;
}

/** Text that can be taken neither for a fence nor for a line of attribution; `isName` where people's names are shown. */
export function escapeMarks(text: string, isName?: (name: string) => boolean): string {
  const clean = escapeFences(text);
  if (!/[[\uFF3B]/.test(clean)) return clean;
  const escaped = clean.replace(HEADER_LOOKALIKE, '$1$2\\$3');
  if (!isName) return escaped;
  return escaped.replace(BRACKETED, (all, start: string, space: string, name: string) =>
    isName(name) ? `${start}${space}\\[${name}]` : all,
  );
}
