import {
  adoptStrategy,
  proposeCut,
  pruneStrategy,
  type StrategyOutcome,
  takeCompaction,
  trimStrategy,
} from '../../context/index.ts';
import type { CompactionEffect, CompactionEvent } from '../../machines/compaction.ts';
import { inSlices } from '../engine/in-slices.ts';
import { awaitOther } from './await-other.ts';
import { makeCompaction } from './make-compaction.ts';
import { brokenCircuit } from './name-largest.ts';
import { noteCompaction } from './note-compaction.ts';
import type { TurnCompaction } from './turn-compaction.ts';
import { retellSteps } from './retell-steps.ts';

/** What the machine's tags name: the rungs of the ladder, each with what came of it. */
export const STRATEGIES: Record<
  CompactionEffect,
  (work: TurnCompaction) => CompactionEvent | Promise<CompactionEvent>
> = {
  adopt: (work) => told(adoptStrategy(work)),
  prune: (work) => told(pruneStrategy(work)),
  summarise: (work) => compactBy(work, 'summary'),
  awaitOther,
  extract: (work) => compactBy(work, 'extraction'),
  trim,
};

async function trim(work: TurnCompaction): Promise<CompactionEvent> {
  const steps = work.plan.turn?.steps;
  const { outputs, deps } = work.run;
  const outcome = await inSlices(deps.clock, trimStrategy(work, outputs, deps.countTokens));
  const isSplit = work.plan.turn !== null && work.plan.turn.steps !== steps;
  if (isSplit && !(await retellSteps(work))) return { type: 'ABORTED' };
  return told(outcome);
}

async function compactBy(work: TurnCompaction, strategy: 'summary' | 'extraction'): Promise<CompactionEvent> {
  const cut = proposeCut(work);
  if (!cut) {
    const message = strategy === 'summary' ? brokenCircuit(work.run) : null;
    if (message !== null) await noteCompaction(work, 'compaction.failed', { strategy, message });
    return { type: 'SKIPPED' };
  }
  const made = await makeCompaction(work, cut, strategy);
  return made.kind === 'made' ? told(takeCompaction(work, made.compaction, strategy)) : made.event;
}

const TOLD = { fits: 'FITS', gained: 'NOT_ENOUGH', nothing: 'SKIPPED' } as const;

function told(outcome: StrategyOutcome): CompactionEvent {
  return { type: TOLD[outcome] };
}
