/** A line end, an end of a sentence in Chinese or Japanese, or signs that end one where a space follows. */
const END = /[\n\r]|[。！？｡]+|[.!?…]["'”’»)\]*_.!?…]*/g;
const SPACED = /^[.!?…]/;

/** The sentences of a text, one line each and as they were written; one pass, however the text is made. */
export function sentencesOf(text: string): string[] {
  const sentences: string[] = [];
  let start = 0;
  for (const { 0: sign, index } of text.matchAll(END)) {
    const at = index + sign.length;
    if (SPACED.test(sign) && at < text.length && !/\s/.test(text.charAt(at))) continue;
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

export function oneLine(text: string): string {
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '').join(' ');
}

/** At most so many characters, never half of one; the marked middle of a long sentence is worth more than its start. */
export function capped(text: string, maxLength: number, keep?: RegExp): string {
  if (text.length <= maxLength) return text;
  const at = keep ? Math.max(0, text.search(keep)) : 0;
  const start = Math.min(Math.max(0, at - Math.floor(maxLength / 2)), text.length - maxLength + 2);
  const piece = text.slice(start, start + maxLength - 2);
  return `${start > 0 ? '…' : ''}${whole(piece)}…`;
}

/** Without the halves of a character at either end. */
export function whole(piece: string): string {
  return piece.replace(/^[\uDC00-\uDFFF]/, '').replace(/[\uD800-\uDBFF]$/, '');
}
