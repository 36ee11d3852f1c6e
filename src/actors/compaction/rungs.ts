import {
  adoptRung,
  proposeCut,
  pruneRung,
  type RungOutcome,
  takeCompaction,
  trimRung,
} from '../../context/index.ts';
import type { ReliefEffect, ReliefEvent } from '../../machines/compaction.ts';
import { inSlices } from '../engine/in-slices.ts';
import { awaitOther } from './await-other.ts';
import { makeCompaction } from './make-compaction.ts';
import { brokenCircuit } from './name-largest.ts';
import { noteRelief } from './note-relief.ts';
import type { TurnRelief } from './relief-work.ts';
import { retellSteps } from './retell-steps.ts';

/** What the machine's tags name: the rungs of the ladder, each with what came of it. */
export const RUNGS: Record<ReliefEffect, (work: TurnRelief) => ReliefEvent | Promise<ReliefEvent>> = {
  adopt: (work) => told(adoptRung(work)),
  prune: (work) => told(pruneRung(work)),
  summarise: (work) => compactBy(work, 'summary'),
  awaitOther,
  extract: (work) => compactBy(work, 'extraction'),
  trim,
};

async function trim(work: TurnRelief): Promise<ReliefEvent> {
  const steps = work.plan.turn?.steps;
  const { outputs, deps } = work.run;
  const outcome = await inSlices(deps.clock, trimRung(work, outputs, deps.countTokens));
  const isSplit = work.plan.turn !== null && work.plan.turn.steps !== steps;
  if (isSplit && !(await retellSteps(work))) return { type: 'ABORTED' };
  return told(outcome);
}

async function compactBy(work: TurnRelief, strategy: 'summary' | 'extraction'): Promise<ReliefEvent> {
  const cut = proposeCut(work);
  if (!cut) {
    const message = strategy === 'summary' ? brokenCircuit(work.run) : null;
    if (message !== null) await noteRelief(work, 'compaction.failed', { strategy, message });
    return { type: 'SKIPPED' };
  }
  const made = await makeCompaction(work, cut, strategy);
  return made.kind === 'made' ? told(takeCompaction(work, made.compaction, strategy)) : made.event;
}

const TOLD = { fits: 'FITS', gained: 'NOT_ENOUGH', nothing: 'SKIPPED' } as const;

function told(outcome: RungOutcome): ReliefEvent {
  return { type: TOLD[outcome] };
}
