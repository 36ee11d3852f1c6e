/**
 * The head and the tail of a text that is longer than `maxChars`, with a note of what is missing between; with
 * `tail: false` the head alone. Never cut inside a code point.
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

/** Head and tail within so many tokens, or null where there is no room for any of it. */
export function clipToTokens(
  text: string,
  maxTokens: number,
  count: (text: string) => number,
): { text: string; cut: boolean } | null {
  const tokens = count(text);
  if (tokens <= maxTokens) return { text, cut: false };
  let chars = Math.floor((text.length * maxTokens) / tokens);
  while (chars > 0) {
    const clipped = clip(text, chars);
    if (count(clipped) <= maxTokens) return { text: clipped, cut: true };
    chars = Math.floor(chars * 0.9);
  }
  return null;
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
