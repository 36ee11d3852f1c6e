type Count = (text: string) => number;

const HEAD_SHARE = 0.65;
const MAX_TRIES = 24;

/** The text if it has at most `maxTokens`, otherwise its head and tail around a note. '' if not even these fit. */
export function headTail(text: string, maxTokens: number, count: Count): string {
  // If the start alone is too long, the rest need not be counted.
  const start = text.slice(0, maxTokens * 8);
  const tokens = count(start);
  if (tokens <= maxTokens && (start.length === text.length || count(text) <= maxTokens)) return text;
  let room = Math.floor((start.length * maxTokens) / Math.max(1, tokens));
  for (let tries = 0; tries < MAX_TRIES && room >= 8; tries += 1) {
    const head = whole(text.slice(0, Math.floor(room * HEAD_SHARE))).trimEnd();
    const tail = whole(text.slice(text.length - Math.floor(room * (1 - HEAD_SHARE)))).trimStart();
    const piece = `${head}\n[… ${text.length - head.length - tail.length} characters …]\n${tail}`;
    if (count(piece) <= maxTokens) return piece;
    room = Math.floor(room * 0.8);
  }
  return '';
}

const BULLET = /^\s*(?:[-*+•]|\d{1,3}[.)])\s+\S/;
const MAX_BULLETS = 12;
const MAX_PART = 400;
const MAX_BULLET = 160;
const GIST_CHARS = 32_768;
const CONCLUSION_CHARS = 10 * MAX_PART;

/**
 * The gist of a long text: its first paragraph, its bullets and its last sentence. Of a very long text only the two ends
 * are read.
 */
export function gist(text: string): string {
  const [first = '', ...rest] = text
    .trim()
    .slice(0, GIST_CHARS)
    .split(/\n\s{0,200}\n/);
  const bullets = rest.flatMap((paragraph) => paragraph.split('\n').filter((line) => BULLET.test(line)));
  const conclusion = rest.length > 0 || text.length > GIST_CHARS ? conclusionOf(text) : '';
  const kept = bullets.slice(0, MAX_BULLETS).map((line) => capped(line.trimEnd(), MAX_BULLET));
  const isSaid = kept.some((line) => line.includes(conclusion));
  const parts = [
    capped(first.trim(), MAX_PART),
    ...kept,
    ...(conclusion === '' || isSaid ? [] : [conclusion]),
  ];
  const short = parts.join('\n');
  return short.length < text.length ? short : text;
}

/** The last sentence of a text. Reads only the last characters. */
export function conclusionOf(text: string): string {
  return capped(sentencesOf(whole(text.slice(-CONCLUSION_CHARS))).at(-1) ?? '', MAX_PART);
}

/** The end of a sentence: a line end, a full stop of Chinese or Japanese, or another end mark. */
const END = /[\n\r]|[。！？｡]+|[.!?…]["'”’»)\]*_.!?…]*/g;
const SPACED = /^[.!?…]/;

/** Abbreviations, whose full stop does not end a sentence. */
const ABBREVIATION =
  /(?:^|[^\p{L}\p{N}.])(?:M(?:r|rs|s|me|lle)|Dr|Prof|St|Hr|Fr|Nr|Sr|Sra|e\.g|i\.e|z\.\s?B|d\.\s?h|bzw|ca|vs|approx)$/u;
/** An ordinal number as in `3. Mai`, whose full stop does not end a sentence. */
const ORDINAL = /(?:^|[^\p{L}\p{N}.,])\d{1,2}$/u;
const MONTH = /^\.\s?(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)/;
const LOOKED_BACK = 8;
const LOOKED_AHEAD = 6;

function isInside(text: string, index: number): boolean {
  const before = text.slice(Math.max(0, index - LOOKED_BACK), index);
  if (ABBREVIATION.test(before)) return true;
  return MONTH.test(text.slice(index, index + LOOKED_AHEAD)) && ORDINAL.test(before);
}

/** The sentences of a text, as written, in one pass. */
export function sentencesOf(text: string): string[] {
  const sentences: string[] = [];
  let start = 0;
  for (const { 0: sign, index } of text.matchAll(END)) {
    const at = index + sign.length;
    if (SPACED.test(sign) && at < text.length && !/\s/.test(text.charAt(at))) continue;
    if (sign === '.' && isInside(text, index)) continue;
    push(sentences, text.slice(start, at));
    start = at;
  }
  push(sentences, text.slice(start));
  return sentences;
}

function push(sentences: string[], piece: string): void {
  const sentence = piece.trim();
  if (sentence !== '') sentences.push(sentence);
}

/** The line without its list mark or heading sign. */
export function bare(line: string): string {
  return line.replace(/^(?:[-*+•>#]{1,6}|\d{1,3}[.)])\s+/, '').trim();
}

/** The text without these characters at its end. A loop, because a pattern would take quadratic time. */
export function withoutEnd(text: string, signs: string): string {
  let end = text.length;
  while (end > 0 && signs.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

export function oneLine(text: string): string {
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '').join(' ');
}

/**
 * Cuts a text to `maxLength` characters, never inside a surrogate pair. Keeps the part around the match of `keep`, if there is
 * one, and otherwise the start.
 */
export function capped(text: string, maxLength: number, keep?: RegExp): string {
  if (text.length <= maxLength) return text;
  const at = keep ? Math.max(0, text.search(keep)) : 0;
  const start = Math.min(Math.max(0, at - Math.floor(maxLength / 2)), text.length - maxLength + 2);
  const piece = text.slice(start, start + maxLength - 2);
  return `${start > 0 ? '…' : ''}${whole(piece)}…`;
}

/** Drops a half surrogate pair at either end. */
export function whole(piece: string): string {
  return piece.replace(/^[\uDC00-\uDFFF]/, '').replace(/[\uD800-\uDBFF]$/, '');
}

/**
 * The head and tail of a text longer than `maxChars`, with a note about the omission between them. With `tail: false` only
 * the head. Never cuts inside a code point.
 */
export function clip(text: string, maxChars: number, { tail = true } = {}): string {
  if (text.length <= maxChars) return text;
  const headEnd = wholeBefore(text, tail ? Math.ceil((maxChars * 2) / 3) : maxChars);
  const tailStart = tail ? wholeAfter(text, text.length - (maxChars - headEnd)) : text.length;
  const note = `[... ${tailStart - headEnd} characters left out ...]`;
  const parts = [text.slice(0, headEnd), note, text.slice(tailStart)];
  const clipped = parts.filter((part) => part !== '').join('\n');
  return clipped.length < text.length ? clipped : text;
}

function wholeBefore(text: string, end: number): number {
  return isHigh(text.charCodeAt(end - 1)) ? end - 1 : end;
}

function wholeAfter(text: string, start: number): number {
  return isHigh(text.charCodeAt(start - 1)) ? start + 1 : start;
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

/** A summary within its room, cut after a paragraph, a line or a sentence, otherwise anywhere. */
export function shortened(text: string, maxTokens: number, count: (text: string) => number): string {
  if (maxTokens <= 0) return '';
  if (count(text) <= maxTokens) return text;
  return cutAtBoundary(text, maxTokens, count) ?? headTail(text, maxTokens, count);
}

/** The longest beginning that fits and ends with a paragraph, otherwise with a line or a sentence. Null if it is too short. */
export function cutAtBoundary(
  text: string,
  maxTokens: number,
  count: (text: string) => number,
): string | null {
  for (const boundary of [/\n[ \t]*\n/g, /\n/g, /(?<=[.!?])\s|(?<=[。！？])/g]) {
    const cut = longestFitting(
      text,
      [...text.matchAll(boundary)].map(({ index }) => index),
      maxTokens,
      count,
    );
    if (count(cut) >= maxTokens / 2) return cut;
  }
  return null;
}

function longestFitting(
  text: string,
  ends: readonly number[],
  maxTokens: number,
  count: (text: string) => number,
): string {
  let [fits, tooMany] = [-1, ends.length];
  while (tooMany - fits > 1) {
    const middle = Math.floor((fits + tooMany) / 2);
    if (count(text.slice(0, ends[middle])) <= maxTokens) fits = middle;
    else tooMany = middle;
  }
  return withoutLastHeadings(text.slice(0, ends[fits] ?? 0)).trim();
}

/** Drops headings without content at the end, but never the first line. */
function withoutLastHeadings(text: string): string {
  const lines = text.split('\n');
  let kept = lines.length;
  while (kept > 1 && isEmptyOrHeading(lines[kept - 1] ?? '')) kept -= 1;
  return lines.slice(0, kept).join('\n');
}

function isEmptyOrHeading(line: string): boolean {
  return /^#{1,6} /.test(line) || line.trim() === '';
}
