import {
  type EventDraft,
  isTaskEnd,
  type CompactionReason,
  type CompactionStrategy,
} from '../../events/index.ts';
import type { Steps } from '../steps.ts';
import type { View } from '../view.ts';
import { choosePrune } from './prune.ts';
import { type ProposedCut, cutPointFor } from './cut-point.ts';
import { latestCompaction, NO_PLAN, type CompactionPlan, withPlan } from './plan.ts';
import { planTrim } from './trim.ts';
import { type CompactionPolicy, isWithin, type Room, sizeIn } from './policy.ts';

/**
 * One compaction in progress. A strategy extends the plan if that makes the prompt smaller, and returns the outcome.
 * The view is not touched until the whole plan is applied.
 */
export interface CompactionRun {
  readonly view: View;
  readonly reason: CompactionReason;
  readonly policy: CompactionPolicy;
  readonly room: Room;
  /** Counted tokens of the present prompt. */
  readonly before: number;
  plan: CompactionPlan;
  /** Counted tokens with the plan. */
  after: number;
  /** Strategies that made the prompt smaller. */
  used: CompactionStrategy[];
}

/** Share of the trigger that suffices for strategies without a model call: the next turn does not compact again. */
const ENOUGH = 0.9;

type SharedCompaction = NonNullable<CompactionPlan['compaction']>;

/** `fits`: below the strategy's limit. `gained`: smaller, but not enough. `nothing`: no use. */
export type StrategyOutcome = 'fits' | 'gained' | 'nothing';

export function startRun(
  view: View,
  { reason, policy, room }: Pick<CompactionRun, 'reason' | 'policy' | 'room'>,
): CompactionRun {
  const before = sizeIn(view, room);
  return { view, reason, policy, room, before, plan: NO_PLAN, after: before, used: [] };
}

/** Another agent's compaction costs nothing to adopt. */
export function adoptStrategy(run: CompactionRun): StrategyOutcome {
  const latest = latestCompaction(run.view);
  const floor = run.plan.compaction?.body.upTo ?? run.view.floor;
  if (!latest || latest.body.upTo <= floor) return 'nothing';
  const limit = isStrict(run) ? run.room.target : run.room.trigger * ENOUGH;
  return tryCompaction(run, latest, 'adopt', limit);
}

export function pruneStrategy(run: CompactionRun): StrategyOutcome {
  const { view, policy, plan, room } = run;
  const { events, memories, gain } = choosePrune(withPlan(view, plan), policy);
  if (gain < policy.prune.minGain) return 'nothing';
  const limit = room.trigger * ENOUGH;
  const pruned = [...plan.pruned, ...events];
  const forgotten = [...plan.forgotten, ...memories];
  return tryPlan(run, { ...plan, pruned, forgotten }, 'prune', limit);
}

/** The reach of the next compaction. Null if none would help, or if the last ones did not. */
export function proposeCut(run: CompactionRun): ProposedCut | null {
  const { view, plan, room, policy, before } = run;
  const cut = cutPointFor(view, plan, room, policy);
  if (!cut || !hasStalled(view, policy)) return cut;
  // The cause of the stall may have passed, so a compaction that is sure to help is still made.
  return before - cut.before + cut.budget <= compactionLimit(run) ? cut : null;
}

export function takeCompaction(
  run: CompactionRun,
  compaction: SharedCompaction,
  strategy: CompactionStrategy,
): StrategyOutcome {
  return tryCompaction(run, compaction, strategy, compactionLimit(run));
}

function tryCompaction(
  run: CompactionRun,
  compaction: SharedCompaction,
  strategy: CompactionStrategy,
  limit: number,
): StrategyOutcome {
  // Events that the view has not shown yet must not be covered.
  if (compaction.body.upTo > shownUpTo(run.view)) return 'nothing';
  return tryPlan(run, { ...run.plan, compaction }, strategy, limit);
}

export function* trimStrategy(
  run: CompactionRun,
  outputs: readonly EventDraft[],
  count: Count,
): Steps<StrategyOutcome> {
  const { view, plan, room, policy } = run;
  const trimmed = yield* planTrim({ view, plan, room, policy, outputs, count });
  return trimmed ? tryPlan(run, trimmed, 'trim', room.available * 0.95) : 'nothing';
}

/** Replaces the text for the early steps of the running turn. False if that would take more room. */
export function replaceTurnSummary(run: CompactionRun, text: string): boolean {
  const { view, plan, room } = run;
  if (!plan.turn) return false;
  const retold = { ...plan, turn: { ...plan.turn, text } };
  const after = sizeIn(withPlan(view, retold), room);
  if (after > Math.max(run.after, room.trigger)) return false;
  run.plan = retold;
  run.after = after;
  return true;
}

/** The last event shown. Pending events lie beyond it, except ends of tasks, which wait for their own turn. */
function shownUpTo({ upTo, pending }: View): number {
  const first = pending.find((event) => !isTaskEnd(event));
  return first ? first.seq - 1 : upTo;
}

type Count = (text: string) => number;

/** The size below which a compaction is worth it. */
function compactionLimit(run: CompactionRun): number {
  const { room, policy } = run;
  return isStrict(run) ? room.target : Math.max(room.target, room.trigger * policy.progress);
}

function isStrict({ reason }: CompactionRun): boolean {
  return reason === 'overflow' || reason === 'join';
}

/** This many compactions in a row without progress stop further ones. */
export const STALLED_AFTER = 3;

export function hasStalled({ cuts }: View, { progress }: CompactionPolicy): boolean {
  const latest = cuts.filter(({ kind }) => kind === 'adopt').slice(-STALLED_AFTER);
  const failed = latest.filter(({ tokens }) => tokens.after > tokens.trigger * progress);
  return failed.length === STALLED_AFTER;
}

function tryPlan(
  run: CompactionRun,
  plan: CompactionPlan,
  strategy: CompactionStrategy,
  limit: number,
): StrategyOutcome {
  const view = withPlan(run.view, plan);
  const after = sizeIn(view, run.room);
  if (after >= run.after) return 'nothing';
  run.plan = plan;
  run.after = after;
  run.used.push(strategy);
  return isWithin(view, run.room, limit) ? 'fits' : 'gained';
}
