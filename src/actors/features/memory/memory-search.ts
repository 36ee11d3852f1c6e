import type { Clock } from '../../../base/clock.ts';
import {
  answersFirst,
  createVectorIndex,
  fuseRanks,
  type Hit,
  type SearchIndex,
  type VectorIndex,
} from '../../../context/retrieve/search.ts';
import { type ActorAddress, addressKey, type Event } from '../../../events/index.ts';
import type { Embedder } from '../../../providers/embedder.ts';
import { memoryText } from '../../../context/retrieve/documents.ts';
import { createStoredIndex, type StoredIndex, type StoredSegments } from './stored-index.ts';
import { type ErrorCode, toTroupeError, TroupeError } from '../../../base/errors.ts';

/**
 * Search over events that have left an agent's window. Owns an index per agent and conversation, made of stored segments and
 * of the log at the first search and then extended, and with an embedder the vectors of the indexed events. All of it is a cache.
 *  1. An agent finds only events that were passed in under its own address, or that are stored for its conversation and that
 *     it may read, up to `MemoryRequest.upTo`.
 *  2. A turn waits for the log and, up to a deadline each, for the vector of its query and for the index of a long log that
 *     no turn has searched yet. An index that takes longer is built in the background, for later turns.
 *  3. If the embedder fails or is late, the search uses only words.
 *  4. If the trigger asks nothing, only close hits are returned, because most turns need no memories.
 */
export interface MemorySearch extends AsyncDisposable {
  /** Seqs of the hits, best first. An answer comes before its question. */
  search(request: MemoryRequest): Promise<{ seq: number }[]>;
  /** Builds and stores the index, for later searches. Never throws. */
  prepare(request: IndexRequest): Promise<void>;
}

interface IndexRequest {
  address: ActorAddress;
  /**
   * The events that the agent may find, in log order: all of them, or a function that reads the pages after a seq, so that
   * indexed events are not read again.
   */
  events: readonly Event[] | ((after: number) => AsyncIterable<readonly Event[]>);
  /** Seq of the last event, if `events` reads pages. */
  upTo?: number;
  /** Stored segments of the index. Absent: none. */
  segments?: StoredSegments;
}

export interface MemoryRequest extends IndexRequest {
  query: string;
  /** False if the query asks nothing: then only close hits are returned. Default: true. */
  isAsked?: boolean;
  limit: number;
  signal: AbortSignal;
}

interface MemorySearchDeps {
  /** Null: searches use only words. */
  embedder: Embedder | null;
  clock: Clock;
  onWarning: (error: unknown, where: string) => void;
  /** Maximum wait of a turn for the vector of its query, ms. Default: 300. */
  deadlineMs?: number;
  /** The same for the first vector, for which the server may have to load its model. At least `deadlineMs`. */
  firstDeadlineMs?: number;
  /** Maximum indexed events in all. The least recently searched index is dropped first. */
  maxEvents?: number;
}

const DEADLINE_MS = 300;
const FIRST_DEADLINE_MS = 10_000;
const MAX_EVENTS = 100_000;
/** Maximum events of a new index for which a turn waits: some 10 ms. */
const MOST_AT_ONCE = 250;
/** Maximum wait of a turn for the index of a long log, ms: enough for some 2,000 events. */
const INDEX_MS = 100;
const FUSED_DEPTH = 50;

export function createMemorySearch(deps: MemorySearchDeps): MemorySearch {
  const { embedder, clock, onWarning, deadlineMs = DEADLINE_MS } = deps;
  const { firstDeadlineMs = FIRST_DEADLINE_MS } = deps;
  let hasAnswered = false;
  const watch = createEmbedderWatch({ clock, onWarning });
  const vectors = embedder && createMemoryVectors({ embedder, watch });
  const indexes = createIndexes(deps);
  const behind = createBehind(deps, extend);

  function extend(kept: StoredIndex, { address, events, upTo, segments }: IndexRequest): Promise<void> {
    const extension = {
      pages: (after: number) => (typeof events === 'function' ? events(after) : inOnePage(events)),
      upTo: upTo ?? Infinity,
      segments: segments ?? null,
      onPart: (part: readonly Event[]) => vectors?.add(address, part),
      onClear: () => vectors?.forget(address),
      isClosed: () => behind.isClosed(),
    };
    // The vectors may have been dropped earlier than the words.
    return kept.extend(extension, vectors?.upTo(address));
  }

  /** The nearest events by meaning; none if the vector of the query is late. */
  async function nearest(index: SearchIndex, request: MemoryRequest): Promise<Hit[]> {
    const known = vectors?.of(request.address);
    if (!embedder || !known || known.size === 0 || !watch.isReady()) return [];
    const limitMs = hasAnswered ? deadlineMs : Math.max(deadlineMs, firstDeadlineMs);
    const vector = await watch.withDeadline(limitMs, request.signal, async (signal) => {
      const [first] = await embedder.embed([request.query], { signal });
      return first;
    });
    hasAnswered ||= vector !== null;
    const { upTo = Infinity } = request;
    return vector ? known.search(vector, FUSED_DEPTH, (seq) => seq <= upTo && index.has(seq)) : [];
  }

  async function hitsFor(request: MemoryRequest, byWords: Hit[], index: SearchIndex): Promise<Hit[]> {
    if (request.isAsked === false) return byWords.filter(({ isClose }) => isClose);
    const byMeaning = request.query.trim() === '' ? [] : await nearest(index, request);
    return byMeaning.length === 0 ? byWords : fuseRanks(byWords, byMeaning);
  }

  return {
    async search(request) {
      const kept = indexes.of(request.address);
      if (!(await behind.isReady(kept, request))) return [];
      await extend(kept, request);
      indexes.shrink(kept);
      const { index } = kept;
      const { query, limit, upTo = Infinity } = request;
      const byWords = index.search(query, Math.max(limit, FUSED_DEPTH), { upTo });
      vectors?.work();
      const hits = await hitsFor(request, byWords, index);
      return answersFirst(hits.slice(0, limit), (seq) => index.answerTo(seq, upTo)).slice(0, limit);
    },
    async prepare(request) {
      const kept = indexes.of(request.address);
      await extend(kept, request).catch((error: unknown) => onWarning(error, 'memory index'));
      await kept.settled();
    },
    async [Symbol.asyncDispose]() {
      await behind.close();
      await indexes.settled();
      await vectors?.[Symbol.asyncDispose]();
    },
  };
}

/** The indexes in memory, by agent and conversation. */
function createIndexes({ maxEvents = MAX_EVENTS, ...deps }: MemorySearchDeps) {
  /** The least recently searched first. */
  const indexes = new Map<string, StoredIndex>();

  return {
    of(address: ActorAddress): StoredIndex {
      const key = addressKey(address);
      const kept = indexes.get(key) ?? createStoredIndex(address.agent, deps);
      indexes.delete(key);
      indexes.set(key, kept);
      return kept;
    },
    /** Drops indexes until at most `maxEvents` events are left, but not `used`. */
    shrink(used: StoredIndex): void {
      let total = [...indexes.values()].reduce((sum, { index }) => sum + index.size, 0);
      for (const [key, each] of indexes) {
        if (total <= maxEvents) return;
        if (each === used) continue;
        total -= each.index.size;
        indexes.delete(key);
      }
    },
    async settled(): Promise<void> {
      await Promise.all([...indexes.values()].map((kept) => kept.settled()));
    },
  };
}

async function* inOnePage(events: readonly Event[]): AsyncIterable<readonly Event[]> {
  yield await Promise.resolve(events);
}

function createBehind(
  { clock, onWarning }: Pick<MemorySearchDeps, 'clock' | 'onWarning'>,
  extend: (kept: StoredIndex, request: MemoryRequest) => Promise<void>,
) {
  const building = new Map<StoredIndex, Promise<boolean>>();
  const closing = new AbortController();

  return {
    /** Whether the index may be searched. The index of a long log is built first, and the wait for it has a deadline. */
    async isReady(kept: StoredIndex, request: MemoryRequest): Promise<boolean> {
      const isLong = kept.index.upTo === 0 && (request.upTo ?? 0) > MOST_AT_ONCE;
      if (!isLong && !building.has(kept)) return true;
      const built =
        building.get(kept) ??
        extend(kept, request)
          .then(
            () => true,
            (error: unknown) => (onWarning(error, 'memory index'), false),
          )
          .finally(() => building.delete(kept));
      building.set(kept, built);
      const waited = new AbortController();
      const late = clock.sleep(INDEX_MS, AbortSignal.any([closing.signal, request.signal, waited.signal]));
      const isBuilt = await Promise.race([built, late.then(() => false)]);
      waited.abort();
      return isBuilt && !closing.signal.aborted;
    },
    isClosed: () => closing.signal.aborted,
    async close() {
      closing.abort();
      await Promise.all(building.values());
    },
  };
}

/**
 * The vectors of messages by conversation, made in the background. The agents of a conversation share them, so only texts that
 * every agent may see get one.
 */
interface MemoryVectors extends AsyncDisposable {
  add(address: ActorAddress, events: readonly Event[]): void;
  of(address: ActorAddress): VectorIndex | undefined;
  upTo(address: ActorAddress): number;
  forget(address: ActorAddress): void;
  /** Embeds queued events in the background, unless that is running or the embedder must not be called. Returns immediately. */
  work(): void;
}

/** Maximum events with a vector or waiting for one, in all: about 120 MB at 1,536 dimensions. */
const MAX_VECTORED = 20_000;
/** Characters of a text that are embedded. They suffice for its topic, and no model refuses so short a text. */
const MAX_CHARS = 2_000;
const BATCH = 64;

interface Conversation {
  vectors: VectorIndex;
  /** Texts by seq, oldest first. */
  waiting: Map<number, string>;
  /** Every seq that was ever queued, refused texts included. */
  seen: Set<number>;
  upTo: number;
}

/** Errors caused by the text itself, which would be refused again. */
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
  /** Conversations, the least recently used first. */
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

  async function embedQueued(): Promise<void> {
    while (watch.isReady() && !closing.signal.aborted) {
      // The conversation used last comes first, because it has a running turn.
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

  /** After a failure texts stay queued, unless they were refused themselves. */
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
      const known = touch(address);
      for (const event of events) {
        known.upTo = Math.max(known.upTo, event.seq);
        const text = memoryText(event, null);
        if (text === null || known.seen.has(event.seq) || known.seen.size >= maxEvents) continue;
        known.seen.add(event.seq);
        known.waiting.set(event.seq, text.slice(0, MAX_CHARS));
      }
      forgetOldest(conversations, maxEvents);
    },
    of: (address) => conversations.get(keyOf(address))?.vectors,
    upTo: (address) => conversations.get(keyOf(address))?.upTo ?? 0,
    forget: (address) => void conversations.delete(keyOf(address)),
    work() {
      working ??= embedQueued().finally(() => (working = null));
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      await working;
    },
  };
}

/** Drops conversations, oldest first, until at most `maxEvents` events are left. The last one is never dropped. */
function forgetOldest(conversations: Map<string, Conversation>, maxEvents: number): void {
  let total = 0;
  for (const { seen } of conversations.values()) total += seen.size;
  for (const [key, { seen }] of conversations) {
    if (total <= maxEvents || conversations.size === 1) return;
    total -= seen.size;
    conversations.delete(key);
  }
}

/**
 * Whether the embedder may be called. After a failure it is not called for `REST_MS`. Of failures in a row only the first
 * causes a warning. Only a query that is answered in time ends the row. Otherwise an embedder that succeeds in the background
 * but is always late for turns would cause warnings for ever.
 */
interface EmbedderWatch {
  isReady(): boolean;
  failed(error: unknown): void;
  /** The result of `ask`. Null if it fails or takes longer than `ms`. */
  withDeadline<T>(
    ms: number,
    signal: AbortSignal,
    ask: (signal: AbortSignal) => Promise<T>,
  ): Promise<T | null>;
}

const REST_MS = 60_000;

function createEmbedderWatch({
  clock,
  onWarning,
}: {
  clock: Clock;
  onWarning: (error: unknown, where: string) => void;
}): EmbedderWatch {
  let restUntil = -Infinity;
  let isFailing = false;

  function failed(error: unknown): void {
    restUntil = clock.monotonic() + REST_MS;
    if (!isFailing) onWarning(error, 'embedder, memories are searched by words alone');
    isFailing = true;
  }

  return {
    isReady: () => clock.monotonic() >= restUntil,
    failed,
    async withDeadline(ms, signal, ask) {
      const asking = new AbortController();
      const answer = ask(AbortSignal.any([signal, asking.signal])).then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      );
      const late = clock.sleep(ms, AbortSignal.any([signal, asking.signal])).then(() => null);
      const outcome = await Promise.race([answer, late]);
      // Aborts the late request, or the sleep.
      asking.abort();
      if (signal.aborted) return null;
      if (outcome && 'value' in outcome) {
        isFailing = false;
        return outcome.value;
      }
      failed(outcome?.error ?? new TroupeError('provider_unreachable', `no vector within ${ms} ms`));
      return null;
    },
  };
}
