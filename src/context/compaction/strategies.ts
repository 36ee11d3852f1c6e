import {
  type EventDraft,
  isTaskEnd,
  type CompactionReason,
  type CompactionStrategy,
} from '../../events/index.ts';
import type { Steps } from '../steps.ts';
import type { View } from '../view.ts';
import { choosePrune } from './prune.ts';
import { type CutFor, cutFor } from './cut-point.ts';
import { latestCompaction, NO_PLAN, type CompactionPlan, withPlan } from './plan.ts';
import { planTrim } from './trim.ts';
import { type CompactionPolicy, isWithin, type Room, sizeIn } from './policy.ts';

/**
 * One relief under way. A rung extends the plan where that makes the prompt smaller, and says what came of it; the view
 * is not touched before the plan is carried out as a whole.
 */
export interface CompactionRun {
  readonly view: View;
  readonly reason: CompactionReason;
  readonly policy: CompactionPolicy;
  readonly room: Room;
  /** Counted tokens of the prompt as it is. */
  readonly before: number;
  plan: CompactionPlan;
  /** Counted tokens with the plan. */
  after: number;
  /** The strategies that brought something. */
  used: CompactionStrategy[];
}

/** Of the trigger: so far under it that the next turn does not come back to it. Enough for what costs no model call. */
const ENOUGH = 0.9;

type SharedCompaction = NonNullable<CompactionPlan['compaction']>;

/** `fits`: under the limit of the rung. `gained`: smaller, but not enough. `nothing`: no use. */
export type StrategyOutcome = 'fits' | 'gained' | 'nothing';

export function startRun(
  view: View,
  { reason, policy, room }: Pick<CompactionRun, 'reason' | 'policy' | 'room'>,
): CompactionRun {
  const before = sizeIn(view, room);
  return { view, reason, policy, room, before, plan: NO_PLAN, after: before, used: [] };
}

/** What another agent has had compacted costs nothing to use. */
export function adoptStrategy(work: CompactionRun): StrategyOutcome {
  const latest = latestCompaction(work.view);
  const floor = work.plan.compaction?.body.upTo ?? work.view.floor;
  if (!latest || latest.body.upTo <= floor) return 'nothing';
  const limit = isStrict(work) ? work.room.target : work.room.trigger * ENOUGH;
  return tryCompaction(work, latest, 'adopt', limit);
}

export function pruneStrategy(work: CompactionRun): StrategyOutcome {
  const { view, policy, plan, room } = work;
  const { events, memories, gain } = choosePrune(withPlan(view, plan), policy);
  if (gain < policy.prune.minGain) return 'nothing';
  const limit = room.trigger * ENOUGH;
  const pruned = [...plan.pruned, ...events];
  const forgotten = [...plan.forgotten, ...memories];
  return tryPlan(work, { ...plan, pruned, forgotten }, 'prune', limit);
}

/** How far the next compaction should reach; null where none would help, or the last ones have not. */
export function proposeCut(work: CompactionRun): CutFor | null {
  const { view, plan, room, policy, before } = work;
  const cut = cutFor(view, plan, room, policy);
  if (!cut || !isFruitless(view, policy)) return cut;
  // What stood in the way may be gone: one that is sure to help is made.
  return before - cut.before + cut.budget <= comfort(work) ? cut : null;
}

export function takeCompaction(
  work: CompactionRun,
  compaction: SharedCompaction,
  strategy: CompactionStrategy,
): StrategyOutcome {
  return tryCompaction(work, compaction, strategy, comfort(work));
}

function tryCompaction(
  work: CompactionRun,
  compaction: SharedCompaction,
  strategy: CompactionStrategy,
  limit: number,
): StrategyOutcome {
  // What the view has not come to yet is shown when it does: it must not be covered before.
  if (compaction.body.upTo > shownUpTo(work.view)) return 'nothing';
  return tryPlan(work, { ...work.plan, compaction }, strategy, limit);
}

export function* trimStrategy(
  work: CompactionRun,
  outputs: readonly EventDraft[],
  count: Count,
): Steps<StrategyOutcome> {
  const { view, plan, room, policy } = work;
  const trimmed = yield* planTrim({ view, plan, room, policy, outputs, count });
  return trimmed ? tryPlan(work, trimmed, 'trim', room.available * 0.95) : 'nothing';
}

/** The early steps of the running turn in other words; false where they would take more room. */
export function retell(work: CompactionRun, text: string): boolean {
  const { view, plan, room } = work;
  if (!plan.turn) return false;
  const retold = { ...plan, turn: { ...plan.turn, text } };
  const after = sizeIn(withPlan(view, retold), room);
  if (after > Math.max(work.after, room.trigger)) return false;
  work.plan = retold;
  work.after = after;
  return true;
}

/** Beyond the inputs that a turn has taken in on its way there is what it has not; the end of a task waits for its own turn. */
function shownUpTo({ upTo, pending }: View): number {
  const first = pending.find((event) => !isTaskEnd(event));
  return first ? first.seq - 1 : upTo;
}

type Count = (text: string) => number;

/** How small a compaction must make the prompt to have been worth it. */
function comfort(work: CompactionRun): number {
  const { room, policy } = work;
  return isStrict(work) ? room.target : Math.max(room.target, room.trigger * policy.progress);
}

function isStrict({ reason }: CompactionRun): boolean {
  return reason === 'overflow' || reason === 'join';
}

/** Compactions that keep not helping are not repeated for ever. */
export const MAX_FRUITLESS = 3;

export function isFruitless({ cuts }: View, { progress }: CompactionPolicy): boolean {
  const latest = cuts.filter(({ kind }) => kind === 'adopt').slice(-MAX_FRUITLESS);
  const failed = latest.filter(({ tokens }) => tokens.after > tokens.trigger * progress);
  return failed.length === MAX_FRUITLESS;
}

function tryPlan(
  work: CompactionRun,
  plan: CompactionPlan,
  strategy: CompactionStrategy,
  limit: number,
): StrategyOutcome {
  const view = withPlan(work.view, plan);
  const after = sizeIn(view, work.room);
  if (after >= work.after) return 'nothing';
  work.plan = plan;
  work.after = after;
  work.used.push(strategy);
  return isWithin(view, work.room, limit) ? 'fits' : 'gained';
}
