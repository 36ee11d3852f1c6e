import type { CompactionBody, Event, EventId, Facts } from '../../events/index.ts';
import type { View } from '../view.ts';
import { type CompactionPlan, withPlan } from './plan.ts';
import { type CompactionPolicy, type Room, sizeIn } from './policy.ts';
import { firstSeq, lastSeq, linesOf, lineTokens, type Slot } from '../slot.ts';

/** Least tokens of a useful summary. */
const LEAST_TOKENS = 150;
const WANTED_TOKENS = 3_000;
/** Tokens of facts and a few sentences in a small window, where a tenth hardly exceeds the frame. */
const SMALL_TOKENS = 400;
const FACTS_TOKENS = 6_000;

export interface ProposedCut {
  upTo: number;
  /** Room for the compaction as rendered. */
  budget: number;
  /** Present tokens of the events it would cover. */
  before: number;
}

/**
 * The reach and size of a new compaction. Keeps as much as possible verbatim, and less until a summary has room. Null
 * if it never has.
 */
export function cutPointFor(
  view: View,
  plan: CompactionPlan,
  room: Room,
  policy: CompactionPolicy,
): ProposedCut | null {
  const most = policy.quoteTokens + policy.summaryTokens + FACTS_TOKENS;
  const tenth = Math.floor(room.available * 0.1);
  const small = Math.min(SMALL_TOKENS, Math.floor(room.available * 0.25));
  const wanted = Math.min(WANTED_TOKENS, Math.max(small, tenth));
  const least = Math.min(WANTED_TOKENS, Math.max(LEAST_TOKENS, tenth));
  let best: ProposedCut | null = null;
  for (const keep of [policy.keepTokens, policy.keepTokens / 4, 0]) {
    const upTo = findCutPoint(view, keep);
    if (upTo <= view.floor) continue;
    const rest = sizeIn(withPlan(view, { ...plan, compaction: emptyCompaction(upTo) }), room);
    const before = sizeIn(view, room) - rest;
    const budget = Math.min(
      most,
      Math.max(room.target - rest, Math.floor(room.trigger * policy.progress) - rest),
    );
    if (budget >= wanted) return { upTo, budget, before };
    // Too little room, so the next try keeps less. This try still counts if its summary fits beside the rest: with the
    // room up to the trigger, or with the minimum if the rest alone exceeds the trigger.
    const modest = Math.max(least, Math.min(wanted, room.trigger - rest));
    const last = Math.min(modest, Math.floor(room.available * 0.95) - rest);
    if (last >= LEAST_TOKENS) best = { upTo, budget: last, before };
  }
  return best;
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

/** A compaction without words, to measure what remains beside it. */
function emptyCompaction(upTo: number): { id: EventId; body: CompactionBody } {
  const body: CompactionBody = {
    number: 1,
    upTo,
    strategy: 'extraction',
    reason: 'over_budget',
    by: 'nobody' as CompactionBody['by'],
    summary: '',
    quotes: [],
    facts: NO_FACTS,
    listing: '',
    chosen: [],
    tokens: { before: 0, after: 0 },
  };
  return { id: 'empty' as EventId, body };
}

/**
 * The event up to which a new compaction should reach, so that about `keepTokens` stay verbatim behind it. 0 if there
 * is nothing to cover. Inputs and steps of the running turn are not counted: they stay anyway.
 */
function findCutPoint(view: View, keepTokens: number): number {
  const units = view.slots.flatMap((slot) => unitsOf(slot, view));
  let tokens = 0;
  let from = units.length;
  for (let at = units.length - 1; at >= 0; at--) {
    const unit = units[at] as Unit;
    tokens += unit.tokens;
    if (tokens > keepTokens) break;
    // A round begins with words of another participant. A round that does not fit is covered whole.
    if (unit.begins) from = at;
  }
  const kept = [...units.slice(from).map(({ first }) => first), ...view.pending.map(({ seq }) => seq)];
  const covered = units.slice(0, from).map(({ last }) => last);
  if (covered.length === 0) return 0;
  return Math.min(Math.max(...covered), ...kept.map((seq) => seq - 1));
}

interface Unit {
  first: number;
  last: number;
  tokens: number;
  begins: boolean;
}

function unitsOf(slot: Slot, { turn }: View): Unit[] {
  const { message, part, step, tokens, layer } = slot;
  if (layer === 'summary' || (step !== null && step.turn === turn?.id)) return [];
  // A synthetic result goes with its step.
  if (!part && lastSeq(slot) === Infinity) return [];
  if (!part) return [{ first: firstSeq(slot), last: lastSeq(slot), tokens, begins: message.role === 'user' }];
  return linesOf(part)
    .filter(({ seq }) => !turn?.inputs.has(seq))
    .map((line) => ({ first: line.seq, last: line.seq, tokens: lineTokens(line), begins: true }));
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
