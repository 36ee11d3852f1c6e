import {
  type EventDraft,
  isTaskEnd,
  type CompactionReason,
  type CompactionStrategy,
  type Event,
  type EventId,
} from '../../events/index.ts';
import type { Steps } from '../text/steps.ts';
import type { View } from '../view/view.ts';
import { choosePrune, oldMemories } from './prune.ts';
import {
  type ProposedCut,
  cutPointFor,
  findPlace,
  type Place,
  placesIn,
  latestCompaction,
  NO_PLAN,
  type CompactionPlan,
  type SharedCompaction,
  withPlan,
} from './plan.ts';
import { type CompactionPolicy, isWithin, progressLimit, type Room, sizeIn } from './policy.ts';
import { collectFactsSteps } from '../extract/facts.ts';
import { keyMessageSteps } from '../extract/key-messages.ts';
import { renderFacts } from '../extract/render-facts.ts';
import { shareRoom } from './share-room.ts';

/**
 * One compaction in progress. A strategy extends the plan if that makes the prompt smaller, and returns the outcome.
 * The view changes only when the whole plan is applied.
 */
export interface CompactionRun {
  readonly view: View;
  readonly reason: CompactionReason;
  readonly policy: CompactionPolicy;
  readonly room: Room;
  /** Counted tokens of the present prompt. */
  readonly before: number;
  plan: CompactionPlan;
  /** Counted tokens of the prompt with the plan. */
  after: number;
  /** Strategies that made the prompt smaller. */
  used: CompactionStrategy[];
}

/** Share of the trigger that suffices for strategies without a model call, so that the next turn need not compact again. */
const ENOUGH = 0.9;

/** `fits`: the prompt is below the strategy's limit. `gained`: it is smaller, but not enough. `nothing`: no gain. */
export type StrategyOutcome = 'fits' | 'gained' | 'nothing';

export function startRun(
  view: View,
  { reason, policy, room }: Pick<CompactionRun, 'reason' | 'policy' | 'room'>,
): CompactionRun {
  const before = sizeIn(view, room);
  return { view, reason, policy, room, before, plan: NO_PLAN, after: before, used: [] };
}

/**
 * Removes old memories, which retrieval finds again when they are useful. If that is not enough, adopts the newest shared
 * compaction, which costs no model call.
 */
export function adoptStrategy(run: CompactionRun): StrategyOutcome {
  if (forgetMemories(run) === 'fits') return 'fits';
  const latest = latestCompaction(run.view);
  const floor = run.plan.compaction?.upTo ?? run.view.floor;
  if (!latest || latest.body.upTo <= floor) return 'nothing';
  const before = { plan: run.plan, after: run.after, used: run.used };
  const outcome = tryCompaction(run, latest, 'adopt', sparingLimit(run));
  if (outcome === 'nothing' || isWorthwhile(run)) return outcome;
  // The adoption alone is not worth the invalidated cache, and a new compaction would replace it.
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

/** If a strategy without a model call reaches this size, no further strategy is tried. */
function sparingLimit(run: CompactionRun): number {
  const { before, room, reason } = run;
  if (reason !== 'over_budget') return room.target;
  return Math.min(room.trigger * ENOUGH, isFitting(run) ? before - leastGain(run) : Infinity);
}

/** The size at which a strategy stops, so that as much as possible stays. */
function aimOf(run: CompactionRun): number {
  return Math.min(run.room.target, run.before - leastGain(run));
}

function leastGain({ room, policy }: CompactionRun): number {
  return room.available * policy.leastGain;
}

function isFitting({ view, room }: Pick<CompactionRun, 'view' | 'room'>): boolean {
  return isWithin(view, room, room.available);
}

/**
 * Whether the plan gains enough to justify writing the cache again. It always does for a request that does not fit otherwise,
 * for a newcomer, whose prompt is in no cache, and for a person's request, if it gains anything.
 */
export function isWorthwhile(run: CompactionRun): boolean {
  return gainSuffices(run, run.after);
}

function gainSuffices(run: CompactionRun, after: number): boolean {
  // The prompt does not need this room, so a compaction that may gain nothing is not paid for.
  if (run.reason === 'manual' || run.reason === 'each_turn') return after < run.before;
  if (isStrict(run) || !isFitting(run)) return true;
  return run.before - after >= leastGain(run);
}

/**
 * The last event and the size of the next compaction. Null if none would gain enough, or if the last ones made no progress
 * and the request fits without one.
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

/** Removes the running turn's own memories, to make room for the history from which they were retrieved. */
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

/** Covers no more than needed: of the events that the compaction covers, the newest stay as far as there is room. */
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

/** Shortens the running turn as far as needed. Texts stay whole if the prompt has room for them below the trigger. */
export function* trimStrategy(
  run: CompactionRun,
  outputs: readonly EventDraft[],
  count: Count,
): Steps<StrategyOutcome> {
  const { view, plan, room, policy } = run;
  const worth = isFitting(run) ? run.before - leastGain(run) : Infinity;
  const limit = Math.max(room.target, Math.min(room.trigger, worth));
  const isRefused = run.reason === 'overflow';
  const most = isRefused ? room.target : room.trigger;
  const aim = isRefused ? room.target : Math.max(room.target, Math.min(room.trigger * ENOUGH, worth));
  const trimmed = yield* planTrim({ view, plan, room, policy, limit, most, aim, outputs, count });
  return trimmed ? tryPlan(run, trimmed, 'trim', room.available * 0.95) : 'nothing';
}

/** Replaces the text for the early steps of the running turn. Returns false if the plan would then gain too little. */
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

/** Seq of the last event shown. Pending events come after it, except ends of tasks, which wait for their own turn. */
function shownUpTo({ upTo, pending, agent }: View): number {
  const first = pending.find((event) => !isTaskEnd(event) || !event.to.includes(agent));
  return first ? first.seq - 1 : upTo;
}

type Count = (text: string) => number;

/** The size that a compaction must reach. */
function compactionLimit(run: CompactionRun): number {
  const { room, policy } = run;
  return isStrict(run) ? room.target : Math.max(room.target, progressLimit(room, policy));
}

/** Whether the compaction must reach the target, regardless of the cost of the cache. */
function isStrict({ reason }: CompactionRun): boolean {
  return reason === 'overflow' || reason === 'join' || reason === 'manual';
}

/** Number of compactions in a row without progress after which no further one is made. */
export const STALLED_AFTER = 3;

/** Whether the last compactions gained too little for another one. Never true for a request that does not fit. */
export function hasStalled(run: Pick<CompactionRun, 'view' | 'room' | 'policy'>): boolean {
  const { view, room, policy } = run;
  if (!isFitting(run)) return false;
  const latest = view.cuts
    .filter((cut) => cut.kind === 'adopt' && cut.compaction !== null)
    .slice(-STALLED_AFTER);
  // Each is judged by the trigger of its time, because the window may have changed.
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

interface TrimInput {
  view: View;
  plan: CompactionPlan;
  room: Room;
  policy: CompactionPolicy;
  /** Size of the prompt at which the running turn is short enough. */
  limit: number;
  /** `most`: size of the prompt above which texts are shortened. `aim`: size that shortening aims at. */
  most: number;
  aim: number;
  outputs: readonly EventDraft[];
  count: (text: string) => number;
}

/** Shares of the available tokens for: the newest outputs, the newest steps, the text of early steps, an older text. */
const OUTPUTS_SHARE = 0.05;
const STEPS_SHARE = 0.15;
const PREFIX_SHARE = 0.1;
const OLD_TEXT_SHARE = 0.04;
/** Factor of the aim each time that texts are shortened again, while the prompt is too long. */
const AGAIN = 0.7;
const MAX_TRIES = 6;

/**
 * The last resort. First prunes tool outputs of the running turn and all old memories, then replaces early steps of the turn
 * by a text, then shortens long texts. Each stage runs only while the prompt is too long. Null if nothing can be done.
 */
function* planTrim(input: TrimInput): Steps<CompactionPlan | null> {
  const { room, limit } = input;
  const stages = [
    { stage: pruneDeep, limit },
    { stage: replaceEarlySteps, limit },
    // Texts are shortened only if the request is too long to send.
    { stage: shorten, limit: input.most },
  ];
  let { plan } = input;
  for (const { stage, limit: enough } of stages) {
    const view = withPlan(input.view, plan);
    if (plan !== input.plan && isWithin(view, room, enough)) continue;
    plan = (yield* stage({ ...input, plan }, view)) ?? plan;
  }
  return plan === input.plan ? null : plan;
}

/** Prunes the oldest first, down to the target. Never prunes results of the last step, which the agent has not read yet. */
function* pruneDeep({ plan, policy, room }: TrimInput, view: View): Steps<CompactionPlan | null> {
  const unread = newestResults(view);
  const prune = { ...policy.prune, turns: 0, protectTokens: Math.floor(room.available * OUTPUTS_SHARE) };
  const deep = { ...policy, prune };
  const memories = oldMemories(view, deep);
  yield view.slots.length;
  const forgotten = [...plan.forgotten, ...memories];
  const rest = withPlan(view, { ...NO_PLAN, forgotten: memories });
  const { events } = choosePrune(rest, deep, sizeIn(rest, room) - room.target);
  const old = events.filter((event) => !unread.has(event));
  if (old.length + memories.length === 0) return null;
  return { ...plan, pruned: [...plan.pruned, ...old], forgotten };
}

/** Ids of the results of the step at the end of the prompt. */
function newestResults({ slots, turn }: View): ReadonlySet<EventId | null> {
  const end = slots.findLastIndex(({ message }) => message.role !== 'user') + 1;
  const from = slots.slice(0, end).findLastIndex(({ message }) => message.role !== 'tool') + 1;
  // Inputs that steered the turn may follow the results. Results before the turn's own input belong to an earlier turn.
  return new Set(from < (turn?.begins ?? 0) ? [] : slots.slice(from, end).map(({ event }) => event));
}

/** Replaces the early steps of a turn that outgrew its window by a text. The newest steps stay. */
function* replaceEarlySteps(
  { plan, room, outputs, count }: TrimInput,
  view: View,
): Steps<CompactionPlan | null> {
  const { turn } = view;
  if (!turn) return null;
  const steps = keptFrom(view, turn.id, stepsRoom(view, turn.id, room));
  if (steps <= (plan.turn?.steps ?? 0)) return null;
  const early = earlySteps(outputs, steps).map((draft, index) => asLogged(draft, index + 1));
  const budget = Math.floor(room.available * PREFIX_SHARE);
  const facts = renderFacts(yield* collectFactsSteps(early, null), Math.floor(budget / 3), count);
  const { quotes } = yield* keyMessageSteps({
    events: early,
    previous: null,
    budget: Math.floor(budget / 2),
    count,
  });
  const text = [...quotes.map((quote) => `- ${quote.text}`), facts].filter(Boolean).join('\n');
  return { ...plan, turn: { id: turn.id, steps, text: text || '(nothing of note)' } };
}

/** Tokens for the newest steps: the room that everything else leaves up to the target. */
function stepsRoom(view: View, turn: string, room: Room): number {
  const ofTurn = view.slots.filter(({ step }) => step?.turn === turn);
  const size = ofTurn.reduce((sum, { tokens }) => sum + tokens, 0);
  const free = room.target - (sizeIn(view, room) - size) - room.available * PREFIX_SHARE;
  return Math.max(room.available * STEPS_SHARE, free);
}

/** Index of the first step to keep. The newest steps within the budget are kept, at least the last one. */
function keptFrom({ slots }: View, turn: string, budget: number): number {
  const sizes = new Map<number, number>();
  for (const { step, tokens } of slots) {
    if (step?.turn === turn) sizes.set(step.index, (sizes.get(step.index) ?? 0) + tokens);
  }
  let left = budget;
  let first: number | null = null;
  for (const [index, tokens] of [...sizes].toReversed()) {
    left -= tokens;
    if (left < 0 && first !== null) break;
    first = index;
  }
  return first ?? 0;
}

/** The first steps of a turn's output, with their results. */
export function earlySteps(outputs: readonly EventDraft[], steps: number): EventDraft[] {
  return outputs.filter((draft) => stepOf(draft) < steps);
}

function stepOf(draft: EventDraft): number {
  if (draft.kind === 'step') return draft.body.index;
  const match = draft.kind === 'tool.result' ? /:result:(\d+)\./.exec(draft.id) : null;
  return match ? Number(match[1]) : Infinity;
}

function asLogged(draft: EventDraft, seq: number): Event {
  const nowhere = { tenant: 'none', conversation: 'none', at: 0, tokens: 0 };
  return { ...nowhere, ...draft, seq } as Event;
}

/** Shortens long texts no more than needed, and never inputs of the running turn. */
function* shorten(input: TrimInput, view: View): Steps<CompactionPlan | null> {
  const { plan, room, count, view: whole } = input;
  const unread = newestResults(view);
  const size = sizeIn(view, room);
  const mostOfOld = Math.floor(room.available * OLD_TEXT_SHARE);
  let shorter: CompactionPlan | null = null;
  // Repeats, because the size of a shortened text is estimated and the bytes of a request are limited too.
  for (let [tries, { aim }] = [0, input]; tries < MAX_TRIES; tries += 1, aim *= AGAIN) {
    const trimmed = yield* shareRoom(view, { size, aim, mostOfOld, unread, count });
    if (trimmed.length === 0) break;
    shorter = { ...plan, trimmed: [...plan.trimmed, ...trimmed] };
    if (isWithin(withPlan(whole, shorter), room, input.most)) break;
  }
  return shorter;
}
