import type { Adoption, CompactionBody, EventId, TurnId, Event, Facts } from '../../events/index.ts';
import { adoptCompaction } from './apply.ts';
import { forkView, type View, firstSeq, lastSeq, linesOf, type Slot } from '../view/view.ts';
import { type CompactionPolicy, progressLimit, type Room, sizeIn } from './policy.ts';

export interface SharedCompaction {
  id: EventId;
  body: CompactionBody;
}

/**
 * Changes to a view, collected over the strategies and applied together, because two changes for one request would
 * invalidate the cache twice.
 */
export interface CompactionPlan {
  /** `upTo`: the last event that it replaces in this view. Newer events stay in the view, even if it covers them. */
  compaction: (SharedCompaction & { upTo: number }) | null;
  pruned: readonly EventId[];
  /** Turns whose retrieved memories are removed. */
  forgotten: readonly TurnId[];
  /** The text that replaces the early steps of the running turn. */
  turn: { id: TurnId; steps: number; text: string } | null;
  trimmed: readonly { event: EventId; text: string }[];
}

export const NO_PLAN: CompactionPlan = {
  compaction: null,
  pruned: [],
  forgotten: [],
  turn: null,
  trimmed: [],
};

export function isEmptyPlan({ compaction, pruned, forgotten, turn, trimmed }: CompactionPlan): boolean {
  return !compaction && !turn && pruned.length + forgotten.length + trimmed.length === 0;
}

/** Whether the plan needs no new epoch: it only prunes. */
export function isPruneOnly({ compaction, turn, trimmed }: CompactionPlan): boolean {
  return !compaction && !turn && trimmed.length === 0;
}

export function adoptionOf(plan: CompactionPlan, rest: Pick<Adoption, 'reason' | 'tokens'>): Adoption {
  const { compaction, pruned, forgotten, turn, trimmed } = plan;
  return {
    compaction: compaction?.id ?? null,
    upTo: compaction?.upTo ?? 0,
    ...(turn && { turn }),
    ...(trimmed.length > 0 && { trimmed: [...trimmed] }),
    ...(pruned.length > 0 && { pruned: [...pruned] }),
    ...(forgotten.length > 0 && { forgotten: [...forgotten] }),
    ...rest,
  };
}

const TENTATIVE = 'tentative' as EventId;

/** The view with the plan applied. The original is not touched. */
export function withPlan(view: View, plan: CompactionPlan): View {
  const fork = forkView(view);
  if (plan.compaction) fork.compactions.set(plan.compaction.id, plan.compaction.body);
  const tokens = { before: 0, after: 0, trigger: 0 };
  adoptCompaction(fork, TENTATIVE, adoptionOf(plan, { reason: 'over_budget', tokens }), { hashes: false });
  return fork;
}

/** The plan without prunes of events that it covers. */
export function presentIn(view: View, plan: CompactionPlan): CompactionPlan {
  const { slots, told } = withPlan(view, { ...plan, pruned: [] });
  const left = new Set(slots.map(({ event }) => event));
  if (told) for (const { part } of slots) if (part) for (const { event } of linesOf(part)) left.add(event);
  return { ...plan, pruned: [...new Set(plan.pruned)].filter((event) => left.has(event)) };
}

export function latestCompaction(view: View): SharedCompaction | null {
  const [id, body] = [...view.compactions].at(-1) ?? [];
  return id !== undefined && body !== undefined ? { id, body } : null;
}

/** Minimum tokens of a useful summary. */
const LEAST_TOKENS = 150;
const WANTED_TOKENS = 3_000;
/** Tokens of facts and a few sentences. In a small window, a tenth of the window would hardly exceed the frame. */
const SMALL_TOKENS = 400;
const FACTS_TOKENS = 6_000;
/**
 * Shares of the free room up to the target that a compaction may take. The lower share applies if messages would otherwise
 * have less than `keepTokens`.
 */
const COMPACTION_SHARE = 0.3;
const LEAST_COMPACTION_SHARE = 0.25;
/** The cut moves to the beginning of a round if that covers at most this share of the target more. */
const ROUND_SHARE = 0.05;

export interface ProposedCut {
  upTo: number;
  /** Maximum tokens of the compaction as rendered. */
  budget: number;
  /** Tokens in the present view of the events that it would cover. */
  before: number;
}

/**
 * The last event and the size of a new compaction. It gets a share of the room up to the target, and the newest messages fill
 * the rest. If what must stay leaves too little room, everything else is covered. Null if there is no room for a summary.
 */
export function cutPointFor(
  view: View,
  plan: CompactionPlan,
  room: Room,
  policy: CompactionPolicy,
): ProposedCut | null {
  const places = placesIn(view, Math.max(view.floor, latestCompaction(view)?.body.upTo ?? 0));
  const end = places.at(-1);
  if (!end) return null;
  const sizeAt = ({ upTo }: Place) => {
    const rest = withPlan(view, { ...plan, compaction: emptyCompaction(upTo) });
    return sizeIn(rest, room) - (rest.slots[0]?.tokens ?? 0);
  };
  const least = sizeAt(end);
  const budget = compactionTokens(least, room, policy);
  if (budget === null) return null;
  const { upTo } = findPlace(places, sizeAt, room.target - budget) ?? end;
  return { upTo, budget, before: sizeIn(view, room) - sizeAt({ upTo, beginsRound: false }) };
}

/** Tokens of a compaction if `least` tokens stay in any case. Null if there is no room for one. */
function compactionTokens(least: number, room: Room, policy: CompactionPolicy): number | null {
  const tenth = Math.floor(room.available * 0.1);
  const small = Math.min(SMALL_TOKENS, Math.floor(room.available * 0.25));
  const wanted = Math.min(WANTED_TOKENS, Math.max(small, tenth));
  const free = Math.max(room.target, Math.floor(progressLimit(room, policy))) - least;
  if (free >= wanted) {
    const share = Math.max(
      free * LEAST_COMPACTION_SHARE,
      Math.min(free * COMPACTION_SHARE, free - policy.keepTokens),
    );
    const most = policy.quoteTokens + policy.summaryTokens + FACTS_TOKENS;
    return Math.min(most, Math.max(wanted, Math.floor(share)));
  }
  // The target cannot be reached. The compaction gets the room up to the trigger, or the minimum if the rest exceeds it.
  const smallest = Math.min(WANTED_TOKENS, Math.max(LEAST_TOKENS, tenth));
  const modest = Math.max(smallest, Math.min(wanted, room.trigger - least));
  // Only the part beside the baseline may turn out larger than estimated: the baseline was measured by earlier requests.
  const sure = room.fixed + (room.available - room.fixed) * 0.95;
  const last = Math.min(modest, Math.floor(sure) - least);
  return last >= LEAST_TOKENS ? last : null;
}

/**
 * The first place that leaves at most `limit` tokens, so that as much as possible stays verbatim. If a round begins shortly
 * after it, the beginning of that round. Null if no place leaves so little.
 */
export function findPlace(
  places: readonly Place[],
  sizeAt: (place: Place) => number,
  limit: number,
): Place | null {
  let [tooLarge, fits] = [-1, places.length];
  while (fits - tooLarge > 1) {
    const middle = Math.floor((fits + tooLarge) / 2);
    if (sizeAt(places[middle] as Place) <= limit) fits = middle;
    else tooLarge = middle;
  }
  const first = places[fits];
  if (!first) return null;
  const round = places.slice(fits).find(({ beginsRound }) => beginsRound);
  return round && sizeAt(round) >= limit * (1 - ROUND_SHARE) ? round : first;
}

const NO_FACTS: Facts = {
  artifacts: [],
  filesRead: [],
  filesModified: [],
  identifiers: [],
  errors: [],
  constraints: [],
  pending: [],
};

/** A compaction without words, with which the rest of a view can be measured. */
function emptyCompaction(upTo: number): NonNullable<CompactionPlan['compaction']> {
  const body: CompactionBody = {
    number: 1,
    upTo,
    strategy: 'extraction',
    reason: 'over_budget',
    by: 'nobody' as CompactionBody['by'],
    summary: '',
    quotes: [],
    facts: NO_FACTS,
    demands: '',
    listing: '',
    chosen: [],
    tokens: { before: 0, after: 0 },
  };
  return { id: 'empty' as EventId, body, upTo };
}

/**
 * The last place at or before `upTo` that is not between a call and its result. A compaction that ends between them would
 * leave one of them alone in some agent's view. `events` must reach to the end of the known log.
 */
export function pairSafe(events: readonly Event[], upTo: number): number {
  let safe = upTo;
  // Moving before one pair may split an earlier pair, so pairs are checked from last to first.
  for (const { from, to } of pairsOf(events).toSorted((a, b) => b.from - a.from)) {
    if (from <= safe && to > safe) safe = from - 1;
  }
  return safe;
}

/** The seqs of each call and its result. `to` is Infinity for a call whose turn has not ended and may still bring a result. */
function pairsOf(events: readonly Event[]): { from: number; to: number }[] {
  const pairs: { from: number; to: number; turn: string | undefined }[] = [];
  const latest = new Map<string, { to: number }>();
  const ended = new Set<string | undefined>([undefined]);
  for (const { kind, author, turn, seq, body } of events) {
    if (kind === 'step') {
      for (const { id } of body.calls) {
        const pair = { from: seq, to: Infinity, turn };
        pairs.push(pair);
        latest.set(`${author.id} ${id}`, pair);
      }
    } else if (kind === 'tool.result') {
      const pair = latest.get(`${author.id} ${body.call}`);
      if (pair) pair.to = seq;
    } else if (kind === 'turn.done' || kind === 'turn.failed' || kind === 'turn.aborted') ended.add(turn);
  }
  return pairs.filter(({ to, turn }) => to !== Infinity || !ended.has(turn));
}

/** A place in a view up to which everything may be covered, without separating a call from its result. */
export interface Place {
  /** Seq of the last covered event. */
  upTo: number;
  /** Whether a round begins after it: words of others that follow the agent's own. */
  beginsRound: boolean;
}

/**
 * The places after `floor` up to which a compaction may reach, oldest first. A place may be between two steps of a turn, or
 * between two lines of a block of missed lines. Inputs and steps of the running turn, and events that the view has not
 * shown yet, come after the last place or are never covered.
 */
export function placesIn(view: View, floor = view.floor): Place[] {
  const units = unitsOf(view).toSorted((a, b) => a.first - b.first || a.last - b.last);
  const end = Math.min(...view.pending.map(({ seq }) => seq - 1));
  const places: Place[] = [];
  let last = 0;
  for (const [at, unit] of units.entries()) {
    last = Math.max(last, unit.last);
    const next = units[at + 1];
    // In the log a result may come after words of others that arrived while the call ran.
    if (last <= floor || last > end || (next && next.first <= last)) continue;
    places.push({ upTo: last, beginsRound: next?.beginsRound ?? true });
  }
  return places;
}

/** A part that is covered as a whole: one line of another speaker, or the agent's own step with its results. */
interface Unit {
  first: number;
  last: number;
  beginsRound: boolean;
}

function unitsOf({ slots, turn }: View): Unit[] {
  const units: Unit[] = [];
  for (const [at, slot] of slots.entries()) {
    const { part, layer, step, message } = slot;
    if (layer === 'summary' || (step !== null && step.turn === turn?.id)) continue;
    const beginsRound = message.role === 'user' && slots[at - 1]?.message.role !== 'user';
    if (part) units.push(...unitsOfLines(slot, beginsRound, turn?.inputs));
    // A synthetic result is not in the log and belongs to its step.
    else if (lastSeq(slot) !== Infinity) addOwn(units, slot, beginsRound);
  }
  return units;
}

function unitsOfLines(slot: Slot, beginsRound: boolean, inputs: ReadonlySet<number> | undefined): Unit[] {
  const seqs = slot.part ? linesOf(slot.part).map(({ seq }) => seq) : [];
  return seqs
    .filter((seq) => !inputs?.has(seq))
    .map((seq, index) => ({ first: seq, last: seq, beginsRound: beginsRound && index === 0 }));
}

function addOwn(units: Unit[], slot: Slot, beginsRound: boolean): void {
  const step = units.at(-1);
  if (slot.message.role === 'tool' && step) step.last = Math.max(step.last, lastSeq(slot));
  else units.push({ first: firstSeq(slot), last: lastSeq(slot), beginsRound });
}
