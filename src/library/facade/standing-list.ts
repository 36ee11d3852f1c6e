import type { ListedStanding, NewStanding, StandingFilter, StandingOrder } from '../../store/standings.ts';

export type { ListedStanding, NewStanding, StandingOrder } from '../../store/standings.ts';

/** Which standings to list, and in which order. */
export interface StandingListQuery extends Omit<StandingFilter, 'tenant' | 'ranges'> {
  /** Default `urgent`: by rank, then the newest. */
  order?: StandingOrder;
  /** Most standings of the page. Default 50. */
  limit?: number;
  /** `next` of the previous page of the same order. */
  after?: string;
  /** Only ids that begin with this. */
  prefix?: string;
  /** Only these conversations and their threads: ids, or prefixes that end with `*`. Default: all. */
  among?: readonly string[];
}

/** A page of standings. */
export interface StandingList {
  /** In the order asked for. */
  rows: ListedStanding[];
  /** Number of standings by rank, whatever ranks and page were asked for. */
  counts: number[];
  /** Number of conversations with events that no standing takes into account yet. */
  behind: number;
  /** Pass it as `after` to get the next page. Null: this was the last page. */
  next: string | null;
}

/** Where each conversation of a tenant stands, as a reader of logs has stored it: the server of the inbox does. */
export interface StandingShelf {
  /** One page. Throws `event_invalid` for an `after` that no page returned. */
  list(query?: StandingListQuery): Promise<StandingList>;
  /** Ids of conversations whose standing is to be stored anew, the newest first. Null: another process does that now. */
  behind(limit: number): Promise<string[] | null>;
  /** Stores one. Throws `conversation_unknown`. */
  save(conversation: string, standing: NewStanding): Promise<void>;
  /** Seq of the stored one; 0: none. Its events are in the index of words. Throws `conversation_unknown`. */
  seqOf(conversation: string): Promise<number>;
}
