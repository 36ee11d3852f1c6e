import type { IdRange } from './id-range.ts';
import { hasTerm, type TermCondition } from './passages.ts';

/**
 * A standing summarizes the state of a conversation: whether it needs a person, since when, what it has cost. Derived data,
 * stored with the conversation's line in the list, so that the inbox can sort and filter any number of conversations without
 * reading their logs. The store knows only the fields that it sorts and filters by.
 *  T1  A standing belongs to a seq of its log, and is replaced only by one of the same or a later seq.
 *  T2  `behind` finds a conversation whose standing is older than its head. After a crash it may find it only after the next
 *      event of the conversation.
 *  T3  A standing is removed with its conversation, and storing one creates no conversation.
 */
export interface StandingRow {
  /** Seq of the last event that it takes into account. */
  seq: number;
  /** Urgency: a whole number from 0 to `MAX_RANK`, the highest is the most urgent. */
  rank: number;
  /** Since when the conversation has been in this state, ms since the epoch. */
  since: number;
  /** Used amount, for the order `costliest`. */
  cost: number;
  /** Money spent, a whole number of millionths, for the order `mostSpent`. */
  spent: number;
  /** Id of its owner, or ''. */
  owner: string;
  /** Ids of its agents, for the filter. */
  agents: readonly string[];
  /** Text that the filter `text` searches, in lower case. */
  words: string;
  /** JSON text of all other fields. */
  data: string;
}

/** A standing to be stored. */
export interface NewStanding extends StandingRow {
  /** The terms of `words`, for the filter `terms`. */
  terms: readonly string[];
}

const MAX_RANK = 9;

/** A standing, with the present end of its log. */
export interface ListedStanding extends StandingRow {
  /** Id of the conversation. */
  id: string;
  /** Last seq of the log. */
  head: number;
  /** Time of the last event, ms since the epoch. */
  at: number;
}

/** Every given condition must hold. */
export interface StandingFilter {
  /** Id of the tenant. */
  tenant: string;
  /** Only these ranks; default all. */
  ranks?: readonly number[];
  /** Only conversations with this agent. */
  agent?: string;
  /** Only conversations of this owner. */
  owner?: string;
  /** `since` is at least this, ms since the epoch. */
  from?: number;
  /** `since` is less than this, ms since the epoch. */
  to?: number;
  /** Only standings whose `words` contain this text, in lower case. */
  text?: string;
  /** Only standings with all of these terms. */
  terms?: readonly TermCondition[];
  /** Only ids within one of these ranges; default all. */
  ranges?: readonly IdRange[];
}

/** The order of a list of standings. */
export type StandingOrder = 'urgent' | 'newest' | 'oldest' | 'costliest' | 'mostSpent';

/** A position in an order: the values of its keys, then the id. */
export interface StandingPlace {
  /** The values of the order's keys; see `STANDING_ORDERS`. */
  keys: readonly number[];
  /** Id of the conversation. */
  id: string;
}

/** A query for a page of standings. */
export interface StandingsQuery extends StandingFilter {
  /** The order of the rows. */
  order: StandingOrder;
  /** Maximum rows. */
  limit: number;
  /** Only standings that follow this position in the order. */
  after?: StandingPlace;
}

/** A page of standings. */
export interface StandingPage {
  /** The standings, in the order of the query. */
  rows: ListedStanding[];
  /** Start of the next page; null at the end. */
  next: StandingPlace | null;
}

/** Counts of conversations. Exact for the standings that are stored. */
export interface StandingCounts {
  /** Number of conversations of each rank; the index is the rank. */
  ranks: number[];
  /** Number of conversations whose standing is older than their last event. */
  behind: number;
}

type StandingKey = 'rank' | 'since' | 'cost' | 'spent';

/** Sort keys of each order, before the id, which is always the last key. All keys of one order have the same direction. */
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

/** The page made of rows that were read with a limit of one more than `limit`. */
export function standingPage(
  rows: ListedStanding[],
  { limit, order }: Pick<StandingsQuery, 'limit' | 'order'>,
): StandingPage {
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return { rows: page, next: last && rows.length > limit ? standingPlaceOf(last, order) : null };
}

/** Whether a standing passes a filter, for stores in memory. */
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

/** Compares standings by an order, for stores in memory. */
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

/** Zero conversations for each rank. */
export function emptyRanks(): number[] {
  return Array.from({ length: MAX_RANK + 1 }, () => 0);
}
