import type { CompactionView } from '../../../src/library/projection/model.ts';

/** What a compaction does, in words. */
export const PHASES: Record<CompactionView['phase'], string> = {
  started: 'making room',
  pruned: 'tool results pruned',
  summarising: 'summarising',
  done: 'made room',
  failed: 'could not make room',
};
