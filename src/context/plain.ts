import { anyOf, followPieces, GAP, HIDDEN, LINE_ENDS, loose, piecesOf } from './look-alikes.ts';

/**
 * The plain framing: `From Ana to @coder (10:12):` stands in front of words, `From Troupe:` in front of the runtime's. Small models
 * copy it less than marks, and it costs them fewer tokens to understand. It has no key, so the escape is the only barrier: no line of
 * an author begins with "from" and ends with a colon.
 */
export function plainHead(who: string, time = ''): string {
  return time === '' ? `From ${who}:` : `From ${who} (${time}):`;
}

/** Who speaks for the runtime. No person can have this name; see `people.ts`. */
export const RUNTIME = 'Troupe';

export function plainNote(text: string): string {
  return `${plainHead(RUNTIME)}\n${text}`;
}

const LINES = new RegExp(`[^${LINE_ENDS}]+`, 'gu');
const FROM = piecesOf(GAP, ...loose('from'), ['one', anyOf(String.raw`\s${HIDDEN}`)]);
const ENDS_WITH_COLON = new RegExp(String.raw`[:\uFF1A\uFE55\uFE13\u2236\uA789][\s${HIDDEN}]*$`, 'u');

/** Escapes lines that could pass for the head of somebody's words. */
export function escapeHeads(text: string): string {
  return text.replace(LINES, (line) =>
    ENDS_WITH_COLON.test(line) && followPieces(line, 0, FROM) ? `\\${line}` : line,
  );
}
