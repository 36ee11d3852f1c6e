import {
  type EventDraft,
  isTaskEnd,
  type CompactionReason,
  type CompactionStrategy,
} from '../../events/index.ts';
import type { Steps } from '../steps.ts';
import type { View } from '../view.ts';
import { choosePrune, oldMemories } from './prune.ts';
import { type ProposedCut, cutPointFor, findPlace } from './cut-point.ts';
import { type Place, placesIn } from './places.ts';
import { latestCompaction, NO_PLAN, type CompactionPlan, type SharedCompaction, withPlan } from './plan.ts';
import { planTrim } from './trim.ts';
import { type CompactionPolicy, isWithin, progressLimit, type Room, sizeIn } from './policy.ts';

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

/** `fits`: below the strategy's limit. `gained`: smaller, but not enough. `nothing`: no use. */
export type StrategyOutcome = 'fits' | 'gained' | 'nothing';

export function startRun(
  view: View,
  { reason, policy, room }: Pick<CompactionRun, 'reason' | 'policy' | 'room'>,
): CompactionRun {
  const before = sizeIn(view, room);
  return { view, reason, policy, room, before, plan: NO_PLAN, after: before, used: [] };
}

/**
 * First removes old memories, which retrieval finds again when they are useful. Then adopts another agent's compaction,
 * which costs nothing.
 */
export function adoptStrategy(run: CompactionRun): StrategyOutcome {
  if (forgetMemories(run) === 'fits') return 'fits';
  const latest = latestCompaction(run.view);
  const floor = run.plan.compaction?.upTo ?? run.view.floor;
  if (!latest || latest.body.upTo <= floor) return 'nothing';
  const before = { plan: run.plan, after: run.after, used: run.used };
  const outcome = tryCompaction(run, latest, 'adopt', sparingLimit(run));
  if (outcome === 'nothing' || isWorthwhile(run)) return outcome;
  // Alone it would not be worth the cache, and a new compaction replaces it.
  Object.assign(run, before);
  return 'nothing';
}

function forgetMemories(run: CompactionRun): StrategyOutcome {
  const { view, policy, plan } = run;
  const forgotten = oldMemories(view, policy).filter((turn) => !plan.forgotten.includes(turn));
  if (forgotten.length === 0) return 'nothing';
  return tryPlan(run, { ...plan, forgotten: [...plan.forgotten, ...forgotten] }, 'prune', sparingLimit(run));
}

export function pruneStrategy(run: CompactionRun): StrategyOutcome {
  const { view, policy, plan, after } = run;
  const enough = run.reason === 'each_turn' ? Infinity : after - aimOf(run);
  const { events, gain } = choosePrune(withPlan(view, plan), policy, enough);
  if (gain < policy.prune.minGain) return 'nothing';
  return tryPlan(run, { ...plan, pruned: [...plan.pruned, ...events] }, 'prune', sparingLimit(run));
}

/** The size that a strategy without a model must reach to be the last one. */
function sparingLimit(run: CompactionRun): number {
  const { before, room, reason } = run;
  if (reason !== 'over_budget') return room.target;
  return Math.min(room.trigger * ENOUGH, isFitting(run) ? before - leastGain(run) : Infinity);
}

/** The size at which a rewrite stops: everything below it stays. */
function aimOf(run: CompactionRun): number {
  return Math.min(run.room.target, run.before - leastGain(run));
}

function leastGain({ room, policy }: CompactionRun): number {
  return room.available * policy.leastGain;
}

/** Whether the request could be sent as it is. */
function isFitting({ view, room }: Pick<CompactionRun, 'view' | 'room'>): boolean {
  return isWithin(view, room, room.available);
}

/**
 * Whether the plan gains enough to write the cache again. A request that does not fit otherwise has no choice, a
 * newcomer's prompt is in no cache, and a person who asks for a compaction has decided.
 */
export function isWorthwhile(run: CompactionRun): boolean {
  return gainSuffices(run, run.after);
}

function gainSuffices(run: CompactionRun, after: number): boolean {
  // Nobody needs this room, so a compaction that may gain nothing is not paid for.
  if (run.reason === 'manual' || run.reason === 'each_turn') return after < run.before;
  if (isStrict(run) || !isFitting(run)) return true;
  return run.before - after >= leastGain(run);
}

/**
 * The reach of the next compaction. Null if none would help or be worth it, or if the last ones did not help and the
 * request fits without one.
 */
export function proposeCut(run: CompactionRun): ProposedCut | null {
  const { view, room, policy, before } = run;
  let cut = cutPointFor(view, run.plan, room, policy);
  if (!cut && forgetOwnMemories(run)) cut = cutPointFor(view, run.plan, room, policy);
  const after = cut ? before - cut.before + cut.budget : before;
  if (!cut || !gainSuffices(run, after)) return null;
  // The cause of the stall may have passed, so a compaction that is sure to help is still made.
  return hasStalled(run) && after > compactionLimit(run) ? null : cut;
}

/** What the running turn was reminded of makes room for the history that it was taken from. */
function forgetOwnMemories(run: CompactionRun): boolean {
  const { view, plan } = run;
  const turn = view.turn?.id;
  if (turn === undefined || isFitting(run) || plan.forgotten.includes(turn)) return false;
  return (
    tryPlan(run, { ...plan, forgotten: [...plan.forgotten, turn] }, 'prune', run.room.target) !== 'nothing'
  );
}

export function takeCompaction(
  run: CompactionRun,
  compaction: SharedCompaction,
  strategy: CompactionStrategy,
): StrategyOutcome {
  return tryCompaction(run, compaction, strategy, compactionLimit(run));
}

/** Covers no more than needed: of the events behind, which the compaction tells too, as many stay as have room. */
function tryCompaction(
  run: CompactionRun,
  compaction: SharedCompaction,
  strategy: CompactionStrategy,
  limit: number,
): StrategyOutcome {
  const { view, plan, room } = run;
  const end = compaction.body.upTo;
  // Events that the view has not shown yet must not be covered.
  if (end > shownUpTo(view)) return 'nothing';
  const planAt = ({ upTo }: Place): CompactionPlan => ({ ...plan, compaction: { ...compaction, upTo } });
  const places = [...placesIn(view).filter(({ upTo }) => upTo < end), { upTo: end, beginsRound: true }];
  const sizeAt = (place: Place) => sizeIn(withPlan(view, planAt(place)), room);
  const place = findPlace(places, sizeAt, aimOf(run)) ?? { upTo: end, beginsRound: true };
  return tryPlan(run, planAt(place), strategy, limit);
}

/** As far as a running turn is shortened; all of its text stays that has room below the trigger. */
export function* trimStrategy(
  run: CompactionRun,
  outputs: readonly EventDraft[],
  count: Count,
): Steps<StrategyOutcome> {
  const { view, plan, room, policy } = run;
  const worth = isFitting(run) ? run.before - leastGain(run) : Infinity;
  const limit = Math.max(room.target, Math.min(room.trigger, worth));
  const trimmed = yield* planTrim({ view, plan, room, policy, limit, outputs, count });
  return trimmed ? tryPlan(run, trimmed, 'trim', room.available * 0.95) : 'nothing';
}

/** Replaces the text for the early steps of the running turn. False if that would take more room. */
export function replaceTurnSummary(run: CompactionRun, text: string): boolean {
  const { view, plan, room } = run;
  if (!plan.turn) return false;
  const retold = { ...plan, turn: { ...plan.turn, text } };
  const after = sizeIn(withPlan(view, retold), room);
  if (after > Math.max(run.after, room.trigger) || !gainSuffices(run, after)) return false;
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
  return isStrict(run) ? room.target : Math.max(room.target, progressLimit(room, policy));
}

/** Whether the target counts, and not what the cache costs. */
function isStrict({ reason }: CompactionRun): boolean {
  return reason === 'overflow' || reason === 'join' || reason === 'manual';
}

/** This many compactions in a row without progress stop further ones. */
export const STALLED_AFTER = 3;

/** Whether the last compactions gained too little for another one. A request that does not fit has no choice. */
export function hasStalled(run: Pick<CompactionRun, 'view' | 'room' | 'policy'>): boolean {
  const { view, room, policy } = run;
  if (!isFitting(run)) return false;
  const latest = view.cuts.filter(({ kind }) => kind === 'adopt').slice(-STALLED_AFTER);
  // The trigger of that time: the window may have been another one.
  const failed = latest.filter(({ tokens }) => tokens.after > progressLimit({ ...room, ...tokens }, policy));
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
