import { signal, type Signal } from '@preact/signals';
import type { Row } from '../../../src/library/projection/model.ts';
import type { Line } from './fold-noise.ts';

/** The source of a list of events: rows by index, some not loaded yet. */
export interface RowSource {
  /** Increases with every change. */
  readonly version: Signal<number>;
  readonly problem: Signal<string | null>;
  count(): number;
  lineAt(index: number): Line | null;
  /** -1 when it is not among them or not loaded yet. */
  indexOf(seq: number): number;
  /** Requests the rows in this range that are not loaded. */
  need(first: number, end: number): void;
  /** Loads the surroundings of an event, or the newest rows for null, unless they are loaded. */
  seek(seq: number | null): void;
  /** Called with new events: their rows, as far as the page can build them itself. */
  arrived(rows: readonly Row[], head: number): void;
  /** Expands a folded row into its events. */
  unfold(seq: number): void;
  close(): void;
}

export function changes(): { version: Signal<number>; problem: Signal<string | null>; changed: () => void } {
  const version = signal(0);
  return { version, problem: signal<string | null>(null), changed: () => version.value++ };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
