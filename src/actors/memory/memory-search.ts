import type { Clock } from '../../clock.ts';
import {
  answersFirst,
  createSearchIndex,
  fuseRanks,
  type Hit,
  type SearchIndex,
} from '../../context/retrieve/search-index.ts';
import { addressKey, type ActorAddress, type Event } from '../../events/index.ts';
import type { Embedder } from '../../providers/embedder.ts';
import { createEmbedderWatch } from './embedder-watch.ts';
import { createMemoryVectors } from './memory-vectors.ts';

/**
 * Search over what left an agent's window. Owns an index for every agent in every conversation, built from the log as
 * it is asked for and extended from then on, and, where there is an embedder, the vectors of what was indexed. All of
 * it is a cache: what is forgotten is built again.
 * 1. An agent finds only events that were handed in under its own address.
 * 2. A turn waits for nothing but the log and, for at most the deadline, the vector of its question.
 * 3. An embedder that fails or is late costs its share of the ranking, never the search.
 */
export interface MemorySearch extends AsyncDisposable {
  /** Best first; before a question stands what it was answered. */
  search(request: MemoryRequest): Promise<{ seq: number }[]>;
}

export interface MemoryRequest {
  address: ActorAddress;
  /**
   * What the agent may find, in the order of the log: all of it, or a reader of the pages after a seq, which spares
   * reading what is indexed already.
   */
  events: readonly Event[] | ((after: number) => AsyncIterable<readonly Event[]>);
  query: string;
  limit: number;
  signal: AbortSignal;
}

export interface MemorySearchDeps {
  /** Null: words alone. */
  embedder: Embedder | null;
  clock: Clock;
  onWarning: (error: unknown, where: string) => void;
  /** How long a turn waits for the vector of its question. */
  deadlineMs?: number;
  /** The same until it has given one: a server may load its model for the first. Never less than `deadlineMs`. */
  firstDeadlineMs?: number;
  /** Events indexed over all addresses; the least recently searched are forgotten first. */
  maxEvents?: number;
}

const DEADLINE_MS = 300;
const FIRST_DEADLINE_MS = 10_000;
const MAX_EVENTS = 100_000;
/** How far down each ranking is looked when two are made one. */
const FUSED_DEPTH = 50;

export function createMemorySearch(deps: MemorySearchDeps): MemorySearch {
  const { embedder, clock, onWarning, deadlineMs = DEADLINE_MS, maxEvents = MAX_EVENTS } = deps;
  const { firstDeadlineMs = FIRST_DEADLINE_MS } = deps;
  let hasAnswered = false;
  const watch = createEmbedderWatch({ clock, onWarning });
  const vectors = embedder && createMemoryVectors({ embedder, watch });
  /** Least recently searched first. */
  const indexes = new Map<string, SearchIndex>();

  function indexOf(address: ActorAddress): SearchIndex {
    const key = addressKey(address);
    const index = indexes.get(key) ?? createSearchIndex(address.agent);
    indexes.delete(key);
    indexes.set(key, index);
    return index;
  }

  function forget(kept: SearchIndex): void {
    let total = [...indexes.values()].reduce((sum, { size }) => sum + size, 0);
    for (const [key, index] of indexes) {
      if (total <= maxEvents) return;
      if (index === kept) continue;
      total -= index.size;
      indexes.delete(key);
    }
  }

  async function extend(index: SearchIndex, { address, events }: MemoryRequest): Promise<void> {
    // Vectors may have been forgotten when the words were not.
    const after = Math.min(index.upTo, vectors?.upTo(address) ?? Infinity);
    for await (const page of typeof events === 'function' ? events(after) : [events]) {
      // Another search may have read this page in the meantime; neither of the two takes an event twice.
      index.add(page);
      vectors?.add(address, page);
    }
  }

  /** The nearest events by meaning; none where that cannot be said in time. */
  async function nearest(index: SearchIndex, request: MemoryRequest): Promise<Hit[]> {
    const known = vectors?.of(request.address);
    if (!embedder || !known || known.size === 0 || !watch.isReady()) return [];
    const limitMs = hasAnswered ? deadlineMs : Math.max(deadlineMs, firstDeadlineMs);
    const vector = await watch.withDeadline(limitMs, request.signal, async (signal) => {
      const [first] = await embedder.embed([request.query], { signal });
      return first;
    });
    hasAnswered ||= vector !== null;
    return vector ? known.search(vector, FUSED_DEPTH, (seq) => index.has(seq)) : [];
  }

  return {
    async search(request) {
      const index = indexOf(request.address);
      await extend(index, request);
      forget(index);
      const byWords = index.search(request.query, Math.max(request.limit, FUSED_DEPTH));
      vectors?.work();
      const byMeaning = request.query.trim() === '' ? [] : await nearest(index, request);
      const hits = byMeaning.length === 0 ? byWords : fuseRanks([byWords, byMeaning]);
      return answersFirst(hits.slice(0, request.limit), index).slice(0, request.limit);
    },
    async [Symbol.asyncDispose]() {
      await vectors?.[Symbol.asyncDispose]();
    },
  };
}
