import { diffArrays } from 'diff';
import type { RunLine } from './evals-package.ts';

/** A line of each side, or a line that the other side lacks. */
export type LinePair =
  | { readonly kind: 'same'; readonly before: RunLine; readonly after: RunLine }
  | { readonly kind: 'differs'; readonly before: RunLine; readonly after: RunLine }
  | { readonly kind: 'gone'; readonly before: RunLine }
  | { readonly kind: 'new'; readonly after: RunLine };

/**
 * Puts the lines of two runs beside each other, in their order: first those that are the same, then between them those of one
 * speaker, or calls of one tool.
 */
export function alignLines(before: readonly RunLine[], after: readonly RunLine[]): LinePair[] {
  return aligned(before, after, {
    keyOf: wholeOf,
    pair: (one, other) => ({ kind: 'same', before: one, after: other }),
    rest: pairsBetween,
  });
}

function pairsBetween(before: readonly RunLine[], after: readonly RunLine[]): LinePair[] {
  return aligned(before, after, {
    keyOf: shapeOf,
    pair: (one, other) => ({ kind: 'differs', before: one, after: other }),
    rest: (gone, added) => [
      ...gone.map((line): LinePair => ({ kind: 'gone', before: line })),
      ...added.map((line): LinePair => ({ kind: 'new', after: line })),
    ],
  });
}

interface Alignment {
  /** Lines with the same key are beside each other. */
  keyOf: (line: RunLine) => string;
  pair: (before: RunLine, after: RunLine) => LinePair;
  /** For what is between two pairs. */
  rest: (before: readonly RunLine[], after: readonly RunLine[]) => LinePair[];
}

function aligned(
  before: readonly RunLine[],
  after: readonly RunLine[],
  { keyOf, pair, rest }: Alignment,
): LinePair[] {
  const pairs: LinePair[] = [];
  const left = { before: [...before], after: [...after] };
  let gone: RunLine[] = [];
  let added: RunLine[] = [];
  for (const { count, ...change } of diffArrays(before.map(keyOf), after.map(keyOf))) {
    if (change.removed) gone = left.before.splice(0, count);
    else if (change.added) added = left.after.splice(0, count);
    else {
      pairs.push(...rest(gone, added));
      [gone, added] = [[], []];
      const others = left.after.splice(0, count);
      for (const [at, line] of left.before.splice(0, count).entries()) pairs.push(pair(line, others[at]!));
    }
  }
  return [...pairs, ...rest(gone, added)];
}

function wholeOf(line: RunLine): string {
  if (line.kind !== 'called') return JSON.stringify([shapeOf(line), line.event.to, line.text]);
  const { args, result } = line;
  return JSON.stringify([shapeOf(line), args, result && [result.body.outcome, result.body.content]]);
}

function shapeOf(line: RunLine): string {
  return JSON.stringify([line.kind, line.who, line.kind === 'called' ? line.tool : line.event.kind]);
}
