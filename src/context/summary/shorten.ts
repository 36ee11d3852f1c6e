import { headTail } from '../extract/cut-text.ts';

/** A summary within its room: cut after a paragraph, a line or a sentence, or else anywhere. */
export function shortened(text: string, maxTokens: number, count: (text: string) => number): string {
  if (maxTokens <= 0) return '';
  if (count(text) <= maxTokens) return text;
  return cutAtBoundary(text, maxTokens, count) ?? headTail(text, maxTokens, count);
}

/** The longest beginning that fits and ends with a paragraph, or else a line or a sentence; null where that is little. */
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

/** A heading with nothing under it says nothing. The first line stays. */
function withoutLastHeadings(text: string): string {
  const lines = text.split('\n');
  let kept = lines.length;
  while (kept > 1 && isEmptyOrHeading(lines[kept - 1] ?? '')) kept -= 1;
  return lines.slice(0, kept).join('\n');
}

function isEmptyOrHeading(line: string): boolean {
  return /^#{1,6} /.test(line) || line.trim() === '';
}
