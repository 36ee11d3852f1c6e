import type { Hit } from './search-index.ts';

/** The constant of reciprocal rank fusion: the larger, the less the first places of one list outweigh the rest. */
const RANK_OFFSET = 60;

/** Several rankings as one, by their ranks alone: scores of different kinds cannot be compared. Ties by seq. */
export function fuseRanks(rankings: readonly (readonly { seq: number }[])[], offset = RANK_OFFSET): Hit[] {
  const scores = new Map<number, number>();
  for (const ranking of rankings) {
    for (const [index, { seq }] of ranking.entries()) {
      scores.set(seq, (scores.get(seq) ?? 0) + 1 / (offset + index + 1));
    }
  }
  return [...scores]
    .map(([seq, score]) => ({ seq, score }))
    .sort((one, other) => other.score - one.score || one.seq - other.seq);
}
