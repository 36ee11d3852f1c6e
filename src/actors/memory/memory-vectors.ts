import { memoryText } from '../../context/retrieve/memories.ts';
import { createVectorIndex, type VectorIndex } from '../../context/retrieve/vector-index.ts';
import { toTroupeError, type ErrorCode } from '../../errors.ts';
import type { ActorAddress, Event } from '../../events/index.ts';
import type { Embedder } from '../../providers/embedder.ts';
import type { EmbedderWatch } from './embedder-watch.ts';

/**
 * The vectors of what was said, by conversation, made in the background of searches. They are shared by the agents of
 * a conversation and therefore made only of what every agent may see.
 */
export interface MemoryVectors extends AsyncDisposable {
  /** Notes events that have no vector yet. */
  add(address: ActorAddress, events: readonly Event[]): void;
  of(address: ActorAddress): VectorIndex | undefined;
  /** The last seq that was noted. */
  upTo(address: ActorAddress): number;
  /** Goes on with what is noted, unless it is being done or the embedder rests. Returns at once. */
  work(): void;
}

/** Events with a vector or waiting for one, over all conversations: at 1,536 dimensions about 120 MB. */
const MAX_EVENTS = 20_000;
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

export function createMemoryVectors({
  embedder,
  watch,
  maxEvents = MAX_EVENTS,
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

  function forget(): void {
    let total = 0;
    for (const { seen } of conversations.values()) total += seen.size;
    for (const [key, { seen }] of conversations) {
      if (total <= maxEvents || conversations.size === 1) return;
      total -= seen.size;
      conversations.delete(key);
    }
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
      forget();
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
