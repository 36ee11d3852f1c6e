import type { EventId } from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';

/** Stored folds of logs, which only save reading; see `checkpoints/checkpoints.ts`. What a fold gives never depends on them. */
export interface Checkpoints {
  /** Least events between two checkpoints of a subject. */
  readonly least: number;
  /** The newest usable checkpoint of a subject. Never throws. */
  load(log: ConversationKey, subject: string, range?: { upTo?: number }): Promise<Loaded | null>;
  /** The place that `save` needs. Null if the log has no such event. Never throws. */
  mark(log: ConversationKey, seq: number): Promise<Place | null>;
  /** Queues a checkpoint. The caller no longer changes `parts`, each of which takes a few milliseconds to pack. */
  save(log: ConversationKey, subject: string, place: Place, parts: readonly unknown[]): void;
  /** Writes what is queued. */
  flush(): Promise<void>;
}

export interface Place {
  seq: number;
  mark: string;
}

export interface Loaded {
  seq: number;
  parts: unknown[];
}

/** Up to where an actor's folds are stored, and the last rewrite of its view there. */
export interface Stored {
  seq: number;
  cut: EventId | null;
}

export const NOTHING_STORED: Stored = { seq: 0, cut: null };

/** For engines without a store that lasts, and tests of what a fold gives without checkpoints. */
export const NO_CHECKPOINTS: Checkpoints = {
  least: Infinity,
  load: () => Promise.resolve(null),
  mark: () => Promise.resolve(null),
  save: () => undefined,
  flush: () => Promise.resolve(),
};
