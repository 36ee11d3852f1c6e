import type { Event, EventId } from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';
import { type PageSource, readPages } from './read-pages.ts';

export interface FoldOptions<T> {
  begin: (log: ConversationKey, name: string) => T;
  /** Changes `state`; waited for where it takes long. */
  fold: (state: T, event: Event) => Promise<void> | void;
  /** Folds at most; the least recently looked at is forgotten first. */
  kept: number;
  /** What one takes, and what all may take: a fold that is larger by itself is not kept. */
  weigh?: { of: (state: T) => number; most: number };
}

export interface LogFolds<T> {
  /** Up to the head of the log. To be used at once: the next look changes it. `name` tells apart folds of one log. */
  of(log: ConversationKey, name?: string): Promise<T>;
}

interface Kept<T> {
  state: T;
  seq: number;
  /** Of the event with that seq. */
  id: EventId | null;
}

/**
 * Logs folded once, and then only what is new. Owns the folds, which can be lost at any moment.
 *  1. Who looks again reads what is new, and the last event that was folded: where another stands there, the conversation
 *     was deleted and begun anew, and is folded from its beginning.
 *  2. Those who look at one log at once wait for each other: the first folds, the others read what came meanwhile.
 */
export function createLogFolds<T>(source: PageSource, options: FoldOptions<T>): LogFolds<T> {
  const { begin, fold, kept: most, weigh } = options;
  const weightOf = (state: T): number => weigh?.of(state) ?? 0;
  const heaviest = weigh?.most ?? 0;
  const known = new Map<string, Kept<T>>();
  const lines = new Map<string, Promise<unknown>>();

  const anew = (log: ConversationKey, name: string): Kept<T> => ({
    state: begin(log, name),
    seq: 0,
    id: null,
  });

  async function catchUp(log: ConversationKey, name: string, kept: Kept<T>): Promise<Kept<T>> {
    let isFirst = kept.seq > 0;
    for await (const events of readPages(source, log, { after: Math.max(0, kept.seq - 1) })) {
      if (isFirst && events[0]?.id !== kept.id) return catchUp(log, name, anew(log, name));
      isFirst = false;
      for (const event of events) {
        if (event.seq <= kept.seq) continue;
        const folding = fold(kept.state, event);
        if (folding) await folding;
        kept.seq = event.seq;
        kept.id = event.id;
      }
    }
    // Nothing stands where it was: deleted.
    return isFirst ? anew(log, name) : kept;
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

  async function look(key: string, log: ConversationKey, name: string): Promise<T> {
    const before = known.get(key) ?? anew(log, name);
    // One that fails half-way is not gone on with.
    known.delete(key);
    const kept = await catchUp(log, name, before);
    keep(key, kept);
    return kept.state;
  }

  return {
    of(log, name = '') {
      const key = `${log.tenant}/${log.conversation}/${name}`;
      const looked = (lines.get(key) ?? Promise.resolve())
        .catch(() => undefined)
        .then(() => look(key, log, name));
      lines.set(key, looked);
      const leave = () => void (lines.get(key) === looked && lines.delete(key));
      looked.then(leave, leave);
      return looked;
    },
  };
}
