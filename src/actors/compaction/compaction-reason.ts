import {
  adoptStrategy,
  choosePrune,
  isEmptyPlan,
  isWorthwhile,
  MAX_REQUEST_BYTES,
  pruneStrategy,
} from '../../context/index.ts';
import type { CompactionReason, PromptRecord } from '../../events/index.ts';
import { changed, type TurnRun } from '../turn/turn-run.ts';
import { WORTH_COMPACTING_PERCENT } from '../turn/model-window.ts';
import { startCompaction } from './turn-compaction.ts';

/** Growth of the prompt after which a compaction that achieved nothing is tried again. */
const GROWTH = 1.05;
/** A history below `keepTokens` times this is not worth a summary. */
const JOIN_GROWTH = 1.5;

/** The reason to compact before this prompt is sent; null if it may be sent. At most one compaction per step. */
export function compactionReason(run: TurnRun, prompt: PromptRecord): CompactionReason | null {
  const { compaction, live } = run;
  if (compaction.tried || compaction.count > 0) return null;
  const { total, free, percent } = prompt.tokens;
  const stuck = live.compactionStuckAt !== null && total <= live.compactionStuckAt * GROWTH && free >= 0;
  const isFull = percent >= run.policy.trigger * 100 || live.view.bytes > MAX_REQUEST_BYTES;
  if (isFull && !stuck) return 'over_budget';
  if (run.step > 0) return null;
  if (live.view.turn?.isToCompact) return 'manual';
  return stuck ? null : reasonWithRoom(run, prompt);
}

function reasonWithRoom(run: TurnRun, prompt: PromptRecord): CompactionReason | null {
  const { live, policy } = run;
  if (isNewcomer(run) && live.view.tokens > policy.keepTokens * JOIN_GROWTH) return 'join';
  const isWorthIt = prompt.tokens.percent >= WORTH_COMPACTING_PERCENT && isCold(run);
  if (isWorthIt && hasWorkWhenCold(changed(run, { prompt }))) return 'cold_cache';
  return policy.prune.eachTurn && hasOldOutputs(run) ? 'each_turn' : null;
}

function hasOldOutputs({ live, policy }: TurnRun): boolean {
  return choosePrune(live.view, policy).gain >= Math.max(1, policy.prune.minGain);
}

/** Whether the agent joins now, with a summary of the history. */
function isNewcomer({ turn, lease }: TurnRun): boolean {
  return turn.join === 'summary' && lease.record.turnNo === 0;
}

/** Compares times in the log, the last turn's end and this trigger: a prompt must not depend on the clock. */
function isCold({ live, turn, policy }: TurnRun): boolean {
  const { spokeAt } = live.view;
  return spokeAt !== null && turn.at !== undefined && turn.at - spokeAt > policy.coldMs;
}

/** Whether what needs no model, adopting and pruning, gains enough. */
function hasWorkWhenCold(run: TurnRun): boolean {
  const work = startCompaction(run, 'cold_cache');
  if (adoptStrategy(work) !== 'fits') pruneStrategy(work);
  return !isEmptyPlan(work.plan) && isWorthwhile(work);
}
