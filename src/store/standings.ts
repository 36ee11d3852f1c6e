import type { IdRange } from './id-range.ts';
import { hasTerm, type TermCondition } from './passages.ts';

/**
 * Where each conversation stands: derived data beside its line in the list, so that what needs a person is found among any
 * number of conversations without reading their logs. The store knows neither states nor words, only what it sorts and
 * filters by.
 *  T1  A standing belongs to a seq of its log, and is replaced only by one of the same or a later seq.
 *  T2  A conversation whose standing is older than its head is found by `behind`. After a crash this may take until its next
 *      event.
 *  T3  A standing is removed with its conversation, and never creates one.
 */
export interface StandingRow {
  /** Seq of the last event that it takes into account. */
  seq: number;
  /** Urgency: a whole number from 0 to `MAX_RANK`, the most urgent highest. */
  rank: number;
  /** Since when the conversation stands like this, ms since the epoch. */
  since: number;
  /** What it has used, for the order. */
  cost: number;
  /** What that has cost, a whole number of millionths, for the order. */
  spent: number;
  /** Id of its owner, or ''. */
  owner: string;
  /** Ids of its agents, for the filter. */
  agents: readonly string[];
  /** Text in which words are looked for, in lower case. */
  words: string;
  /** JSON text of the rest. */
  data: string;
}

/** A standing to be stored. */
export interface NewStanding extends StandingRow {
  /** The terms of `words`, for the filter. */
  terms: readonly string[];
}

const MAX_RANK = 9;

/** A standing with the present end of its log. */
export interface ListedStanding extends StandingRow {
  /** Id of the conversation. */
  id: string;
  /** Last seq of the log. */
  head: number;
  /** Time of the last event, ms since the epoch. */
  at: number;
}

/** All that is given must hold. */
export interface StandingFilter {
  /** Id of the tenant. */
  tenant: string;
  /** Only these ranks; default all. */
  ranks?: readonly number[];
  /** Only conversations of this agent. */
  agent?: string;
  /** Only conversations of this owner. */
  owner?: string;
  /** `since` is at least this, ms since the epoch. */
  from?: number;
  /** `since` is less than this, ms since the epoch. */
  to?: number;
  /** Only those with this in their `words`, in lower case. */
  text?: string;
  /** Only those with all of these terms. */
  terms?: readonly TermCondition[];
  /** Only ids within one of these ranges; default all. */
  ranges?: readonly IdRange[];
}

/** What a list of standings is sorted by. */
export type StandingOrder = 'urgent' | 'newest' | 'oldest' | 'costliest' | 'mostSpent';

/** A position in an order: the values of its keys, then the id. */
export interface StandingPlace {
  /** The values of the order's keys; see `STANDING_ORDERS`. */
  keys: readonly number[];
  /** Id of the conversation. */
  id: string;
}

/** A page of standings. */
export interface StandingsQuery extends StandingFilter {
  /** What comes first. */
  order: StandingOrder;
  /** Most rows of the page. */
  limit: number;
  /** Only what follows this position in the order. */
  after?: StandingPlace;
}

/** A page of standings. */
export interface StandingPage {
  /** In the order asked for. */
  rows: ListedStanding[];
  /** Start of the next page; null at the end. */
  next: StandingPlace | null;
}

/** Conversations by rank, and those that `behind` would find. Exact for the standings that are stored. */
export interface StandingCounts {
  /** Index: the rank. */
  ranks: number[];
  /** Conversations whose standing is older than their last event. */
  behind: number;
}

type StandingKey = 'rank' | 'since' | 'cost' | 'spent';

/** Keys of each order; the id is the last one. All keys of one order have the same direction. */
export const STANDING_ORDERS: Readonly<
  Record<StandingOrder, { keys: readonly StandingKey[]; direction: 'up' | 'down' }>
> = {
  urgent: { keys: ['rank', 'since'], direction: 'down' },
  newest: { keys: ['since'], direction: 'down' },
  oldest: { keys: ['since'], direction: 'up' },
  costliest: { keys: ['cost'], direction: 'down' },
  mostSpent: { keys: ['spent'], direction: 'down' },
};

/** The position of a standing in an order. */
export function standingPlaceOf(row: ListedStanding, order: StandingOrder): StandingPlace {
  return { keys: STANDING_ORDERS[order].keys.map((key) => row[key]), id: row.id };
}

/** The page of rows of which one more than `limit` was looked for. */
export function standingPage(
  rows: ListedStanding[],
  { limit, order }: Pick<StandingsQuery, 'limit' | 'order'>,
): StandingPage {
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return { rows: page, next: last && rows.length > limit ? standingPlaceOf(last, order) : null };
}

/** Whether a standing that is in memory passes a filter. */
export function passes(row: ListedStanding & NewStanding, filter: StandingFilter): boolean {
  const { ranks, agent, owner, from, to, text } = filter;
  return (
    (!ranks || ranks.includes(row.rank)) &&
    (agent === undefined || row.agents.includes(agent)) &&
    (owner === undefined || row.owner === owner) &&
    (from === undefined || row.since >= from) &&
    (to === undefined || row.since < to) &&
    (text === undefined || row.words.includes(text)) &&
    isIndexed(row, filter)
  );
}

function isIndexed({ id, terms }: ListedStanding & NewStanding, filter: StandingFilter): boolean {
  if (filter.terms && !filter.terms.every((term) => hasTerm(terms, term))) return false;
  return !filter.ranges || filter.ranges.some(({ from, to }) => id >= from && id < to);
}

/** Order of rows that are in memory. */
export function byStanding(order: StandingOrder): (a: StandingPlace, b: StandingPlace) => number {
  const sign = STANDING_ORDERS[order].direction === 'up' ? 1 : -1;
  return (a, b) => {
    for (const [index, value] of a.keys.entries()) {
      const other = b.keys[index] ?? 0;
      if (value !== other) return sign * (value - other);
    }
    if (a.id === b.id) return 0;
    return a.id < b.id ? -sign : sign;
  };
}

/** No conversation of any rank. */
export function emptyRanks(): number[] {
  return Array.from({ length: MAX_RANK + 1 }, () => 0);
}
