import { diffArrays } from 'diff';

/** A piece of a line; changed pieces are marked. */
export interface Piece {
  text: string;
  isChanged: boolean;
}

/** A line of a diff with its sign. Without pieces, the whole line is new or removed. */
export interface DiffLine {
  line: string;
  pieces: readonly Piece[] | null;
}

/** Limits of the work on one pair of changed passages, because the texts come from outside. */
const MAX_CHARS = 20_000;
const MAX_EDITS = 200;
/** Below this share of common text, marks would only be noise. */
const MIN_COMMON = 0.3;
const WORDS = /[\p{L}\p{N}_]+|\s+|[^]/gu;

/** Marks the changed words where removed lines are followed by added ones. */
export function withWords(lines: readonly string[]): DiffLine[] {
  const found: DiffLine[] = lines.map((line) => ({ line, pieces: null }));
  for (let at = 0; at < lines.length;) {
    const added = endOfRun(lines, at, '-');
    const end = endOfRun(lines, added, '+');
    if (added > at && end > added) {
      const words = wordDiff(textOf(lines.slice(at, added)), textOf(lines.slice(added, end)));
      const marked = words === null ? [] : [...byLine(words.before), ...byLine(words.after)];
      for (const [index, pieces] of marked.entries()) {
        const line = found[at + index];
        if (line) line.pieces = pieces;
      }
    }
    at = Math.max(end, at + 1);
  }
  return found;
}

function endOfRun(lines: readonly string[], from: number, sign: string): number {
  let end = from;
  while (lines[end]?.startsWith(sign)) end += 1;
  return end;
}

function textOf(lines: readonly string[]): string {
  return lines.map((line) => line.slice(1)).join('\n');
}

/** The differences between two texts, by words. Null if the texts are too long or too different. */
export function wordDiff(before: string, after: string): { before: Piece[]; after: Piece[] } | null {
  if (before.length > MAX_CHARS || after.length > MAX_CHARS) return null;
  const options = { maxEditLength: MAX_EDITS };
  const changes = diffArrays(before.match(WORDS) ?? [], after.match(WORDS) ?? [], options);
  if (changes === undefined) return null;
  const found = { before: [] as Piece[], after: [] as Piece[] };
  let common = 0;
  for (const { value, added, removed } of changes) {
    const text = value.join('');
    if (!added && !removed) common += text.trim().length;
    if (!added) found.before.push({ text, isChanged: removed });
    if (!removed) found.after.push({ text, isChanged: added });
  }
  return common < MIN_COMMON * Math.max(before.length, after.length) ? null : found;
}

function byLine(pieces: readonly Piece[]): Piece[][] {
  const lines: Piece[][] = [[]];
  for (const { text, isChanged } of pieces) {
    for (const [index, part] of text.split('\n').entries()) {
      if (index > 0) lines.push([]);
      if (part !== '') lines.at(-1)?.push({ text: part, isChanged });
    }
  }
  return lines;
}
