import type { CompactionBody, EventId, Facts } from '../../events/index.ts';
import type { View } from '../view.ts';
import { type CompactionPlan, withPlan } from './plan.ts';
import { planCut } from './plan-cut.ts';
import type { CompactionPolicy } from './policy.ts';
import { type Room, sizeIn } from './room.ts';

/** A summary below this says nothing; one above `MOST_TOKENS` is no summary. */
const LEAST_TOKENS = 150;
const WANTED_TOKENS = 3_000;
/** What facts and a few sentences take in a small window, where a tenth is hardly more than the frame. */
const SMALL_TOKENS = 400;
const FACTS_TOKENS = 6_000;

export interface CutFor {
  upTo: number;
  /** Room for the compaction as it is rendered. */
  budget: number;
  /** What is there now for the events it would cover. */
  before: number;
}

/**
 * How far a new compaction should reach and how large it may be: as much as possible stays verbatim, and less and less
 * of it until a summary has room. Null where none has.
 */
export function cutFor(
  view: View,
  plan: CompactionPlan,
  room: Room,
  policy: CompactionPolicy,
): CutFor | null {
  const most = policy.quoteTokens + policy.summaryTokens + FACTS_TOKENS;
  const small = Math.min(SMALL_TOKENS, Math.floor(room.available * 0.25));
  const wanted = Math.min(WANTED_TOKENS, Math.max(small, Math.floor(room.available * 0.1)));
  let best: CutFor | null = null;
  for (const keep of [policy.keepTokens, policy.keepTokens / 4, 0]) {
    const upTo = planCut(view, keep);
    if (upTo <= view.floor) continue;
    const rest = sizeIn(withPlan(view, { ...plan, compaction: emptyCompaction(upTo) }), room);
    const before = sizeIn(view, room) - rest;
    const budget = Math.min(
      most,
      Math.max(room.target - rest, Math.floor(room.trigger * policy.progress) - rest),
    );
    if (budget >= wanted) return { upTo, budget, before };
    // What stays is over the target already: the less of it, the better, and the summary must leave room for the turn.
    const last = Math.min(Math.max(wanted, LEAST_TOKENS), Math.floor(room.available * 0.95) - rest);
    if (last >= LEAST_TOKENS) best = { upTo, budget: last, before };
  }
  return best;
}

export const NO_FACTS: Facts = {
  artifacts: [],
  filesRead: [],
  filesModified: [],
  identifiers: [],
  errors: [],
  constraints: [],
  pending: [],
};

/** Stands for the events and says nothing, to see what is left beside it. */
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
