import type { Event, EventId } from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';
import { type PageSource, readPages } from './read-pages.ts';

export interface FoldOptions<T> {
  begin: (log: ConversationKey, name: string) => T;
  /** A stored fold to go on from; null if there is none. */
  restore?: (log: ConversationKey, name: string) => Promise<{ state: T; seq: number } | null>;
  /** Stores a fold, if that is worth it. `stored`: seq of the last stored one. Returns that of the stored one then. */
  store?: (log: ConversationKey, state: T, seqs: { seq: number; stored: number }) => number;
  /** Changes `state`. Returns a promise if it takes long. */
  fold: (state: T, event: Event) => Promise<void> | void;
  /** Most folds that are kept. The least recently read is dropped first. */
  kept: number;
  /** Weight of a fold, and the most that all may weigh. A fold that alone weighs more is not kept. */
  weigh?: { of: (state: T) => number; most: number };
}

export interface LogFolds<T> {
  /** The fold up to the head of the log. Use it at once: the next read changes it. `name` distinguishes folds of one log. */
  of(log: ConversationKey, name?: string): Promise<T>;
}

interface Kept<T> {
  state: T;
  seq: number;
  /** Id of the event at `seq`. */
  id: EventId | null;
  /** Seq of the stored fold. */
  stored: number;
}

/**
 * Folds of logs that are extended by new events only. Owns the folds, which can be lost at any moment.
 *  1. A read fetches the new events and the last folded one. If that seq has another event, the conversation was deleted
 *     and created again, and is folded from its beginning.
 *  2. Concurrent reads of one log wait for each other: the first folds, the others read only what came meanwhile.
 */
export function createLogFolds<T>(source: PageSource, options: FoldOptions<T>): LogFolds<T> {
  const { begin, restore, store, fold, kept: most, weigh } = options;
  const weightOf = (state: T): number => weigh?.of(state) ?? 0;
  const heaviest = weigh?.most ?? 0;
  const known = new Map<string, Kept<T>>();
  const queues = new Map<string, Promise<unknown>>();

  const anew = (log: ConversationKey, name: string): Kept<T> => ({
    state: begin(log, name),
    seq: 0,
    id: null,
    stored: 0,
  });

  async function catchUp(log: ConversationKey, name: string, kept: Kept<T>): Promise<Kept<T>> {
    let isFirst = kept.seq > 0;
    for await (const events of readPages(source, log, { after: Math.max(0, kept.seq - 1) })) {
      if (isFirst && kept.id !== null && events[0]?.id !== kept.id)
        return catchUp(log, name, anew(log, name));
      isFirst = false;
      for (const event of events) {
        if (event.seq === kept.seq) kept.id = event.id;
        if (event.seq <= kept.seq) continue;
        const folding = fold(kept.state, event);
        if (folding) await folding;
        kept.seq = event.seq;
        kept.id = event.id;
      }
    }
    // The last folded event is gone: the conversation was deleted.
    return isFirst ? anew(log, name) : kept;
  }

  /** The id is unknown: the checkpoint has been compared with the log already. */
  async function restored(log: ConversationKey, name: string): Promise<Kept<T>> {
    const found = await restore?.(log, name);
    return found ? { ...found, id: null, stored: found.seq } : anew(log, name);
  }

  function keep(key: string, kept: Kept<T>): void {
    if (weightOf(kept.state) > heaviest) return;
    known.set(key, kept);
    let weight = 0;
    for (const { state } of known.values()) weight += weightOf(state);
    for (const [oldest, { state }] of known) {
      if (known.size <= most && weight <= heaviest) return;
      weight -= weightOf(state);
      known.delete(oldest);
    }
  }

  async function readFold(key: string, log: ConversationKey, name: string): Promise<T> {
    const before = known.get(key);
    // A fold that fails half-way must not be reused.
    known.delete(key);
    const kept = await catchUp(log, name, before ?? (await restored(log, name)));
    keep(key, kept);
    if (store) kept.stored = store(log, kept.state, kept);
    return kept.state;
  }

  return {
    of(log, name = '') {
      const key = `${log.tenant}/${log.conversation}/${name}`;
      const read = (queues.get(key) ?? Promise.resolve())
        .catch(() => undefined)
        .then(() => readFold(key, log, name));
      queues.set(key, read);
      const leave = () => void (queues.get(key) === read && queues.delete(key));
      read.then(leave, leave);
      return read;
    },
  };
}
