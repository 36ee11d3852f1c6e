import { signal, type Signal } from '@preact/signals';
import type { Row } from '../../../src/library/projection/model.ts';
import type { Line } from './fold-noise.ts';

/** The source of a list of events: rows by index, some of which are not loaded yet. */
export interface RowSource {
  /** Increases with every change. */
  readonly version: Signal<number>;
  readonly problem: Signal<string | null>;
  count(): number;
  lineAt(index: number): Line | null;
  /** Index of an event; -1 if it is not in the list or not loaded yet. */
  indexOf(seq: number): number;
  /** Requests the rows in this range that are not loaded. */
  need(first: number, end: number): void;
  /** Loads an event with its surroundings, or for null the newest rows, unless they are loaded. */
  seek(seq: number | null): void;
  /** Called with the rows of new events, as far as the page can build rows itself. */
  arrived(rows: readonly Row[], head: number): void;
  /** Expands a folded row into its events. */
  unfold(seq: number): void;
  close(): void;
}

export function changes(): { version: Signal<number>; problem: Signal<string | null>; changed: () => void } {
  const version = signal(0);
  return { version, problem: signal<string | null>(null), changed: () => version.value++ };
}
