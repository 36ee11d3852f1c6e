import { type DocColumns } from './doc-columns.ts';
import type { Hit, Scope } from './ranking.ts';
import { SAYS } from './search-doc.ts';

/** Events searched for an answer after a question, and the longest pause before it. */
const ANSWER_WITHIN = 6;
const ANSWER_WITHIN_SECONDS = 3_600;
const QUESTION = SAYS.indexOf('question');
const MESSAGE = SAYS.indexOf('message');

/** The answer to a question: the next message of another author that is not a question. Null for all other events. */
export function answerTo(docs: DocColumns, seq: number, { viewer, upTo }: Scope): number | null {
  const asked = docs.numberOf(seq);
  if (asked === null || docs.says[asked] !== QUESTION) return null;
  const isVisible = docs.visibility(viewer);
  const end = Math.min(docs.countUpTo(upTo), asked + 1 + ANSWER_WITHIN);
  for (let number = asked + 1; number < end; number += 1) {
    const pause = (docs.ats[number] ?? 0) - (docs.ats[asked] ?? 0);
    const isAnswer =
      docs.says[number] === MESSAGE &&
      docs.speakers[number] !== docs.speakers[asked] &&
      pause <= ANSWER_WITHIN_SECONDS &&
      isVisible[docs.readers[number] ?? 0] === true;
    if (isAnswer) return docs.seqs[number] ?? null;
  }
  return null;
}

/** An old question is nearest to a new one but says nothing, so its answer goes before it. */
export function answersFirst(
  hits: readonly { seq: number }[],
  answerOf: (seq: number) => number | null,
): { seq: number }[] {
  const ranked = hits.flatMap(({ seq }) => [answerOf(seq) ?? seq, seq]);
  return [...new Set(ranked)].map((seq) => ({ seq }));
}

/** Constant of reciprocal rank fusion: a larger one gives the top ranks less weight. */
const RANK_OFFSET = 10;
/**
 * Weight of the ranking by meaning beside that by words. As equals, a small embedding model costs a quarter of the
 * recall (docs/score.md); so it costs none, and the nearest text that shares no word is still among the first dozen.
 */
const MEANING_WEIGHT = 0.5;

/** Fuses the rankings by words and by meaning by rank alone, since their scores cannot be compared. Ties by seq. */
export function fuseRanks(byWords: readonly { seq: number }[], byMeaning: readonly { seq: number }[]): Hit[] {
  const scores = new Map<number, number>();
  const add = (ranking: readonly { seq: number }[], weight: number) => {
    for (const [index, { seq }] of ranking.entries())
      scores.set(seq, (scores.get(seq) ?? 0) + weight / (RANK_OFFSET + index + 1));
  };
  add(byWords, 1);
  add(byMeaning, MEANING_WEIGHT);
  return [...scores]
    .map(([seq, score]) => ({ seq, score }))
    .sort((one, other) => other.score - one.score || one.seq - other.seq);
}
