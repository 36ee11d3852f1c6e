import {
  budgetOf,
  choosePrune,
  type CompactionPolicy,
  latestCompaction,
  MAX_REQUEST_BYTES,
  type ModelFacts,
  scaledPolicy,
} from '../../context/index.ts';
import type { AgentRuntime } from '../engine/agent-runtime.ts';
import type { CompactionReason, PromptRecord } from '../../events/index.ts';
import type { TurnRun } from '../turn/turn-run.ts';

/** The window as defined, or a smaller one that the model was found to have. */
export function windowFor({ profile }: Pick<AgentRuntime, 'profile'>, { window }: ModelFacts): number {
  return window === null ? profile.contextWindow : Math.min(profile.contextWindow, window);
}

/** The rest is a margin: our count of tokens is not the provider's. */
const REQUEST_SHARE = 0.8;

/** Tokens for the request of a summary, in a window that must also hold the answer. */
export function requestTokens(window: number, answerTokens: number): number {
  return Math.floor((window - answerTokens) * REQUEST_SHARE);
}

/** Tokens that the window leaves beside the answer. */
export function availableIn(runtime: Pick<AgentRuntime, 'profile'>, model: ModelFacts): number {
  const { maxOutputTokens } = runtime.profile;
  return budgetOf({ window: windowFor(runtime, model), maxOutputTokens }).available;
}

/** Limits in tokens are scaled down to what a small window leaves. */
export function policyFor(runtime: AgentRuntime, model: ModelFacts): CompactionPolicy {
  return scaledPolicy(runtime.policy, availableIn(runtime, model));
}

/** Share of the available room below which a cold cache is no reason to compact. */
const WORTH_COMPACTING_PERCENT = 40;
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
  if (stuck) return null;
  const { trigger, keepTokens } = run.policy;
  if (percent >= trigger * 100 || live.view.bytes > MAX_REQUEST_BYTES) return 'over_budget';
  if (run.step > 0) return null;
  if (isNewcomer(run) && live.view.tokens > keepTokens * JOIN_GROWTH) return 'join';
  if (percent >= WORTH_COMPACTING_PERCENT && isCold(run) && hasWorkWhenCold(run)) return 'cold_cache';
  return null;
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

function hasWorkWhenCold({ live, policy }: TurnRun): boolean {
  const latest = latestCompaction(live.view);
  if (latest !== null && latest.body.upTo > live.view.floor) return true;
  const { gain } = choosePrune(live.view, policy);
  return gain >= policy.prune.minGain;
}
