/** An author's text within what Troupe writes around it: `content.slice(from, to)` is the text. */
export interface Framed {
  content: string;
  from: number;
  to: number;
}

export function frame(before: string, text: string, after = ''): Framed {
  return { content: before + text + after, from: before.length, to: before.length + text.length };
}
