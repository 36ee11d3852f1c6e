import type { CompactionBody, Event, EventId, Facts } from '../../events/index.ts';
import type { View } from '../view.ts';
import { type CompactionPlan, latestCompaction, withPlan } from './plan.ts';
import { type Place, placesIn } from './places.ts';
import { type CompactionPolicy, progressLimit, type Room, sizeIn } from './policy.ts';

/** Least tokens of a useful summary. */
const LEAST_TOKENS = 150;
const WANTED_TOKENS = 3_000;
/** Tokens of facts and a few sentences in a small window, where a tenth hardly exceeds the frame. */
const SMALL_TOKENS = 400;
const FACTS_TOKENS = 6_000;
/**
 * Parts of the room up to the target that a compaction may take: the lesser one where messages would otherwise have
 * less than `keepTokens`.
 */
const COMPACTION_SHARE = 0.3;
const LEAST_COMPACTION_SHARE = 0.25;
/** A round stays whole or is covered whole if that moves the cut by at most this part of the target. */
const ROUND_SHARE = 0.05;

export interface ProposedCut {
  upTo: number;
  /** Room for the compaction as rendered. */
  budget: number;
  /** Present tokens of the events it would cover. */
  before: number;
}

/**
 * The reach and size of a new compaction: it gets a part of the room up to the target, and the newest messages fill
 * the rest. If what must stay leaves too little of that room, all else is covered. Null if a summary never has room.
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

/** Tokens of a compaction beside `least` tokens that stay anyway. Null if there is no room for one. */
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
  // More than the target: with the room up to the trigger, or with the minimum if the rest alone exceeds the trigger.
  const smallest = Math.min(WANTED_TOKENS, Math.max(LEAST_TOKENS, tenth));
  const modest = Math.max(smallest, Math.min(wanted, room.trigger - least));
  // The size of the baseline is known from earlier requests: only the rest may turn out larger.
  const sure = room.fixed + (room.available - room.fixed) * 0.95;
  const last = Math.min(modest, Math.floor(sure) - least);
  return last >= LEAST_TOKENS ? last : null;
}

/**
 * The first place that leaves at most `limit` tokens, so as much as possible stays verbatim. Where a round begins shortly
 * behind it, that place. Null if none leaves so little.
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

/** A compaction without words, at the start of a view, to measure what remains beside it. */
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
 * The last place at or before `upTo` where no call waits for its result. A summary between a call and its result would
 * leave one of them alone in some agent's view. `events` reach to the end of the known log.
 */
export function pairSafe(events: readonly Event[], upTo: number): number {
  let safe = upTo;
  // Moving before one pair may split an earlier one, so the order is from last to first.
  for (const { from, to } of pairsOf(events).toSorted((a, b) => b.from - a.from)) {
    if (from <= safe && to > safe) safe = from - 1;
  }
  return safe;
}

/** Each call with its result. A call of a turn still being committed may get its result later. */
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
