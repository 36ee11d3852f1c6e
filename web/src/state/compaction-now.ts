import type { CompactionView } from '../../../src/library/projection/model.ts';

/** The running compaction. One that has only pruned results has ended, like one that is done. */
export function compactionNow(compactions: readonly CompactionView[]): CompactionView | null {
  return compactions.findLast(({ endedAt }) => endedAt === null) ?? null;
}
