import type { FoundPassage, Passage, PassagesQuery } from '../../store/passages.ts';

export type { FoundPassage, Passage, TermCondition } from '../../store/passages.ts';

/** Which passages to find. */
export interface PassageListQuery extends Omit<PassagesQuery, 'tenant' | 'ranges'> {
  /** Only of this conversation. */
  conversation?: string;
  /** Only of conversations whose standing has one of these ranks. */
  ranks?: readonly number[];
  /** Only these conversations and their threads: ids, or prefixes that end with `*`. Default: all. */
  among?: readonly string[];
}

/** A page of passages, the newest first. */
export interface PassageList {
  /** May be fewer than `limit`, or none: only `next` tells the end. */
  passages: FoundPassage[];
  /** Pass it as `after` to get the next page. Null: this was the last page. */
  next: string | null;
}

/** The index of words over all conversations of a tenant, as a reader of logs has stored it: the server's search does. */
export interface PassageShelf {
  /** One page of passages that have all terms. */
  find(query: PassageListQuery): Promise<PassageList>;
  /** Stores passages of a conversation. Throws `conversation_unknown`. */
  save(conversation: string, passages: readonly Passage[]): Promise<void>;
}
