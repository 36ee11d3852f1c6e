import type { Clock } from '../../clock.ts';
import {
  answersFirst,
  createSearchIndex,
  fuseRanks,
  type Hit,
  type SearchIndex,
} from '../../context/retrieve/search-index.ts';
import { type ActorAddress, addressKey, type Event } from '../../events/index.ts';
import type { Embedder } from '../../providers/embedder.ts';
import { createEmbedderWatch, type EmbedderWatch } from './embedder-watch.ts';
import { memoryText } from '../../context/retrieve/memories.ts';
import { createVectorIndex, type VectorIndex } from '../../context/retrieve/vector-index.ts';
import { type ErrorCode, toTroupeError } from '../../errors.ts';

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

/**
 * The vectors of what was said, by conversation, made in the background of searches. They are shared by the agents of
 * a conversation and therefore made only of what every agent may see.
 */
interface MemoryVectors extends AsyncDisposable {
  /** Notes events that have no vector yet. */
  add(address: ActorAddress, events: readonly Event[]): void;
  of(address: ActorAddress): VectorIndex | undefined;
  /** The last seq that was noted. */
  upTo(address: ActorAddress): number;
  /** Goes on with what is noted, unless it is being done or the embedder rests. Returns at once. */
  work(): void;
}

/** Events with a vector or waiting for one, over all conversations: at 1,536 dimensions about 120 MB. */
const MAX_VECTORED = 20_000;
/** The beginning says what an event is about, and no model refuses so short a text. */
const MAX_CHARS = 2_000;
const BATCH = 64;

interface Conversation {
  vectors: VectorIndex;
  /** Texts by seq, in the order in which they came. */
  waiting: Map<number, string>;
  /** Every seq that was ever noted, refused texts included. */
  seen: Set<number>;
  upTo: number;
}

/** The texts themselves are to blame: they would be refused again. */
const REFUSALS: readonly ErrorCode[] = ['provider_invalid_request', 'provider_refused', 'context_overflow'];

function newConversation(): Conversation {
  return { vectors: createVectorIndex(), waiting: new Map(), seen: new Set(), upTo: 0 };
}

function createMemoryVectors({
  embedder,
  watch,
  maxEvents = MAX_VECTORED,
}: {
  embedder: Embedder;
  watch: EmbedderWatch;
  maxEvents?: number;
}): MemoryVectors {
  /** Least recently used first. */
  const conversations = new Map<string, Conversation>();
  const closing = new AbortController();
  let working: Promise<void> | null = null;

  const keyOf = ({ tenant, conversation }: ActorAddress) => `${tenant}/${conversation}`;

  function touch(address: ActorAddress): Conversation {
    const key = keyOf(address);
    const found = conversations.get(key) ?? newConversation();
    conversations.delete(key);
    conversations.set(key, found);
    return found;
  }

  async function workOff(): Promise<void> {
    while (watch.isReady() && !closing.signal.aborted) {
      // The conversation that was used last has a turn going on.
      const next = [...conversations.values()].findLast(({ waiting }) => waiting.size > 0);
      if (!next) return;
      try {
        await embedSome(next);
      } catch (error) {
        if (!closing.signal.aborted) watch.failed(error);
        return;
      }
    }
  }

  /** What fails stays noted, unless it was refused for what it says. */
  async function embedSome({ vectors, waiting }: Conversation): Promise<void> {
    const batch = [...waiting].slice(0, BATCH);
    const texts = batch.map(([, text]) => text);
    const made = await embedder.embed(texts, { signal: closing.signal }).catch((error: unknown) => {
      if (REFUSALS.includes(toTroupeError(error).code)) for (const [seq] of batch) waiting.delete(seq);
      throw error;
    });
    for (const [index, [seq]] of batch.entries()) {
      vectors.add(seq, made[index] ?? []);
      waiting.delete(seq);
    }
  }

  return {
    add(address, events) {
      const noted = touch(address);
      for (const event of events) {
        noted.upTo = Math.max(noted.upTo, event.seq);
        const text = memoryText(event, null);
        if (text === null || noted.seen.has(event.seq) || noted.seen.size >= maxEvents) continue;
        noted.seen.add(event.seq);
        noted.waiting.set(event.seq, text.slice(0, MAX_CHARS));
      }
      forgetOldest(conversations, maxEvents);
    },
    of: (address) => conversations.get(keyOf(address))?.vectors,
    upTo: (address) => conversations.get(keyOf(address))?.upTo ?? 0,
    work() {
      working ??= workOff().finally(() => (working = null));
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      await working;
    },
  };
}

/** Keeps at most `maxEvents` events; the last conversation stays, however large. Expects the oldest first. */
function forgetOldest(conversations: Map<string, Conversation>, maxEvents: number): void {
  let total = 0;
  for (const { seen } of conversations.values()) total += seen.size;
  for (const [key, { seen }] of conversations) {
    if (total <= maxEvents || conversations.size === 1) return;
    total -= seen.size;
    conversations.delete(key);
  }
}
