import type { Feature } from '../feature.ts';
import { askSummary } from './ask-summary.ts';
import { compactionReason } from './compaction-reason.ts';
import { recordSummary } from './record-summary.ts';
import { beginStep, replayCompaction } from './replay-compaction.ts';
import { runCompaction } from './run-compaction.ts';

export const compaction: Feature = {
  open: () => ({
    compaction: {
      beginStep,
      replay: replayCompaction,
      reason: compactionReason,
      compact: runCompaction,
      askSummary,
      recordSummary,
    },
  }),
};
