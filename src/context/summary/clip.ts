import { headTail } from '../extract/cut-text.ts';

/**
 * The head and tail of a text longer than `maxChars`, with a note of the omission between. With `tail: false` the head
 * alone. Never cuts inside a code point.
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

/** A summary within its room, cut after a paragraph, a line or a sentence, or else anywhere. */
export function shortened(text: string, maxTokens: number, count: (text: string) => number): string {
  if (maxTokens <= 0) return '';
  if (count(text) <= maxTokens) return text;
  return cutAtBoundary(text, maxTokens, count) ?? headTail(text, maxTokens, count);
}

/** The longest fitting beginning that ends with a paragraph, or else a line or a sentence. Null if it is short. */
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

/** Drops headings without content at the end. The first line stays. */
function withoutLastHeadings(text: string): string {
  const lines = text.split('\n');
  let kept = lines.length;
  while (kept > 1 && isEmptyOrHeading(lines[kept - 1] ?? '')) kept -= 1;
  return lines.slice(0, kept).join('\n');
}

function isEmptyOrHeading(line: string): boolean {
  return /^#{1,6} /.test(line) || line.trim() === '';
}
