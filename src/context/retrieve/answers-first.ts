import type { SearchIndex } from './search-index.ts';

/**
 * An old question is nearest to a new one, and tells nothing: the answer that was given to it goes before it. On LoCoMo
 * recall@10 rises from 0.826 to 0.836 (`score/retrieval.ts`).
 */
export function answersFirst<H extends { seq: number }>(
  hits: readonly H[],
  { answerTo }: Pick<SearchIndex, 'answerTo'>,
): { seq: number }[] {
  const ranked = hits.flatMap(({ seq }) => [answerTo(seq) ?? seq, seq]);
  return [...new Set(ranked)].map((seq) => ({ seq }));
}
