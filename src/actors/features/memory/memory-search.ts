import type { Clock } from '../../../base/clock.ts';
import {
  answersFirst,
  createSearchIndex,
  createVectorIndex,
  fuseRanks,
  type Hit,
  type SearchIndex,
  type VectorIndex,
} from '../../../context/retrieve/search.ts';
import { type ActorAddress, addressKey, type Event } from '../../../events/index.ts';
import type { Embedder } from '../../../providers/embedder.ts';
import { memoryText } from '../../../context/retrieve/documents.ts';
import { slicesOf } from '../../../base/slices.ts';
import { type ErrorCode, toTroupeError, TroupeError } from '../../../base/errors.ts';

/**
 * Search over events that have left an agent's window. Owns an index per agent and conversation, built from the log at
 * the first search and then extended, and with an embedder the vectors of the indexed events. All of it is a cache and can
 * be rebuilt.
 *  1. An agent finds only events that were passed in under its own address.
 *  2. A turn waits for the log and, up to a deadline each, for the vector of its query and for the index of a long log that
 *     no turn has searched yet. An index that takes longer is built behind the turn, for the next ones.
 *  3. If the embedder fails or is late, the search uses words alone.
 *  4. Who asks nothing is told what is close to the words alone: most turns need no memories.
 */
export interface MemorySearch extends AsyncDisposable {
  /** Best first; an answer comes before its question. */
  search(request: MemoryRequest): Promise<{ seq: number }[]>;
}

export interface MemoryRequest {
  address: ActorAddress;
  /**
   * The events that the agent may find, in log order: all of them, or a reader of the pages after a seq, which saves
   * reading indexed events again.
   */
  events: readonly Event[] | ((after: number) => AsyncIterable<readonly Event[]>);
  /** The last event, for a reader of pages. */
  upTo?: number;
  query: string;
  /** False where nothing is asked: then nothing is found but what is close to the words. Default true. */
  isAsked?: boolean;
  limit: number;
  signal: AbortSignal;
}

interface MemorySearchDeps {
  /** Null: search by words alone. */
  embedder: Embedder | null;
  clock: Clock;
  onWarning: (error: unknown, where: string) => void;
  /** Longest wait of a turn for the vector of its query. Default 300 ms. */
  deadlineMs?: number;
  /** The same before the first vector, because the server may have to load its model. At least `deadlineMs`. */
  firstDeadlineMs?: number;
  /** Most indexed events in all. The least recently searched index is dropped first. */
  maxEvents?: number;
}

const DEADLINE_MS = 300;
const FIRST_DEADLINE_MS = 10_000;
const MAX_EVENTS = 100_000;
/** Most events of a new index that a turn waits for: some 10 ms. */
const MOST_AT_ONCE = 250;
/** Tokens of events that are indexed at once: some 10 ms. Of a very long text only the beginning is. */
const PART_TOKENS = 32_768;
const MOST_TOKENS_OF_ONE = 65_536;
/** Longest wait of a turn for the index of a long log, ms: enough for some 2,000 events. */
const INDEX_MS = 100;
/** Ranks of each ranking that are used when two are fused. */
const FUSED_DEPTH = 50;

export function createMemorySearch(deps: MemorySearchDeps): MemorySearch {
  const { embedder, clock, onWarning, deadlineMs = DEADLINE_MS, maxEvents = MAX_EVENTS } = deps;
  const { firstDeadlineMs = FIRST_DEADLINE_MS } = deps;
  let hasAnswered = false;
  const watch = createEmbedderWatch({ clock, onWarning });
  const vectors = embedder && createMemoryVectors({ embedder, watch });
  /** Least recently searched first. */
  const indexes = new Map<string, SearchIndex>();
  const behind = createBehind(deps, extend);

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
    // The vectors may have been dropped earlier than the words.
    const after = Math.min(index.upTo, vectors?.upTo(address) ?? Infinity);
    for await (const page of typeof events === 'function' ? events(after) : [events]) {
      if (behind.isClosed()) return;
      // Another search may have added this page meanwhile; events that are already known are skipped.
      await inParts(clock, page, (part) => {
        index.add(part);
        vectors?.add(address, part);
      });
    }
  }

  /** The nearest events by meaning; none if the vector of the query is not there in time. */
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

  async function hitsFor(request: MemoryRequest, byWords: Hit[], index: SearchIndex): Promise<Hit[]> {
    if (request.isAsked === false) return byWords.filter(({ isClose }) => isClose);
    const byMeaning = request.query.trim() === '' ? [] : await nearest(index, request);
    return byMeaning.length === 0 ? byWords : fuseRanks(byWords, byMeaning);
  }

  return {
    async search(request) {
      const index = indexOf(request.address);
      if (!(await behind.isReady(index, request))) return [];
      await extend(index, request);
      forget(index);
      const byWords = index.search(request.query, Math.max(request.limit, FUSED_DEPTH));
      vectors?.work();
      const hits = await hitsFor(request, byWords, index);
      return answersFirst(hits.slice(0, request.limit), (seq) => index.answerTo(seq)).slice(0, request.limit);
    },
    async [Symbol.asyncDispose]() {
      await behind.close();
      await vectors?.[Symbol.asyncDispose]();
    },
  };
}

/** Gives way to other work between two parts of a page with much text. */
async function inParts(
  clock: Clock,
  page: readonly Event[],
  add: (part: readonly Event[]) => void,
): Promise<void> {
  let [from, tokens] = [0, 0];
  for (const [at, event] of page.entries()) {
    tokens += Math.min(event.tokens, MOST_TOKENS_OF_ONE);
    if (tokens < PART_TOKENS) continue;
    add(page.slice(from, at + 1));
    [from, tokens] = [at + 1, 0];
    await slicesOf(clock).next();
  }
  if (from < page.length) add(page.slice(from));
}

/** Builds the indexes of long logs in the background. */
function createBehind(
  { clock, onWarning }: Pick<MemorySearchDeps, 'clock' | 'onWarning'>,
  extend: (index: SearchIndex, request: MemoryRequest) => Promise<void>,
) {
  const building = new Map<SearchIndex, Promise<boolean>>();
  const closing = new AbortController();

  return {
    /** Whether the index may be searched. That of a long log is built first, and waited for no longer than the deadline. */
    async isReady(index: SearchIndex, request: MemoryRequest): Promise<boolean> {
      const isLong = index.upTo === 0 && (request.upTo ?? 0) > MOST_AT_ONCE;
      if (!isLong && !building.has(index)) return true;
      const built =
        building.get(index) ??
        extend(index, request)
          .then(
            () => true,
            (error: unknown) => (onWarning(error, 'memory index'), false),
          )
          .finally(() => building.delete(index));
      building.set(index, built);
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
 * The vectors of messages, by conversation, made in the background of searches. The agents of a conversation share them,
 * so they are made only of texts that every agent may see.
 */
interface MemoryVectors extends AsyncDisposable {
  /** Queues events that have no vector yet. */
  add(address: ActorAddress, events: readonly Event[]): void;
  of(address: ActorAddress): VectorIndex | undefined;
  /** The last queued seq. */
  upTo(address: ActorAddress): number;
  /** Embeds queued events in the background, unless that is under way or the embedder rests. Returns at once. */
  work(): void;
}

/** Most events with a vector or waiting for one, in all: about 120 MB at 1,536 dimensions. */
const MAX_VECTORED = 20_000;
/** The beginning of a text is enough for its topic, and no model refuses a text so short. */
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

/** Errors caused by the texts themselves, which would be refused again. */
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

  async function embedQueued(): Promise<void> {
    while (watch.isReady() && !closing.signal.aborted) {
      // The conversation used last has a turn under way.
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

  /** Texts stay queued after a failure, unless they were refused themselves. */
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
    work() {
      working ??= embedQueued().finally(() => (working = null));
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      await working;
    },
  };
}

/** Keeps at most `maxEvents` events. The last conversation stays, however large. Expects the oldest first. */
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
 * is a warning. Only a query answered in time ends the row: an embedder that succeeds in the background but is always late
 * for turns would otherwise cause warnings for ever.
 */
interface EmbedderWatch {
  isReady(): boolean;
  failed(error: unknown): void;
  /** The result of `ask`; null if it fails or takes longer than `ms`. */
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
      // Ends the late request, or the sleep.
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
