import type { Event } from '../../events/index.ts';
import { dayOf } from './dates.ts';
import { DocColumns } from './doc-columns.ts';
import { answerTo } from './hits.ts';
import { type Hit, parseQuestion, rank, RANK_SETTINGS, type RankSettings } from './ranking.ts';
import { searchDoc } from './search-doc.ts';
import { WordPostings } from './word-postings.ts';

/**
 * Full-text search over a log in memory; see `ranking.ts`. Grows at its end only: events come in the order of the log, and
 * older ones are ignored.
 */
export interface SearchIndex {
  /** Number of searchable events, for whomever. */
  readonly size: number;
  /** The last seq added, searchable or not. */
  readonly upTo: number;
  add(events: readonly Event[]): void;
  /** Whether the event is searchable. */
  has(seq: number): boolean;
  answerTo(seq: number): number | null;
  /** Best first. `now` is the time of the question, ms; default that of the last event. */
  search(query: string, limit: number, now?: number): Hit[];
}

/** `viewer`: the agent that asks; null finds what everybody may read. */
export function createSearchIndex(
  viewer: string | null = null,
  settings: RankSettings = RANK_SETTINGS,
): SearchIndex {
  const docs = new DocColumns();
  const words = new WordPostings();
  const scope = { viewer, upTo: Infinity };
  let upTo = 0;

  return {
    get size() {
      return docs.count;
    },
    get upTo() {
      return upTo;
    },
    add(events) {
      for (const event of events) {
        if (event.seq <= upTo) continue;
        upTo = event.seq;
        const doc = searchDoc(event);
        if (!doc) continue;
        words.add(docs.count, doc.words);
        docs.push(doc);
      }
    },
    has: (seq) => docs.numberOf(seq) !== null,
    answerTo: (seq) => answerTo(docs, seq, scope),
    search(query, limit, now) {
      const today = dayOf(now ?? (docs.ats[docs.count - 1] ?? 0) * 1_000);
      const postingsOf = (word: number) => {
        const found = words.of(word);
        return found ? [found] : [];
      };
      return rank({ docs, postingsOf }, parseQuestion(query, today), { ...scope, limit }, settings);
    },
  };
}
