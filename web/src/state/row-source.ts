import { signal, type Signal } from '@preact/signals';
import type { Row } from '../../../src/projection/model.ts';
import type { Line } from './fold-noise.ts';

/** What a list of events draws from: lines by index, of which some are not here yet. */
export interface RowSource {
  /** Rises with every change. */
  readonly version: Signal<number>;
  readonly problem: Signal<string | null>;
  count(): number;
  lineAt(index: number): Line | null;
  /** -1 where it is not among them, or not here yet. */
  indexOf(seq: number): number;
  /** Asks for what of these is not here. */
  need(first: number, end: number): void;
  /** Fetches what is around an event, or, for null, the newest, where it is not here. */
  seek(seq: number | null): void;
  /** Events have come: their rows, where the page can tell them by itself. */
  arrived(rows: readonly Row[], head: number): void;
  /** Lets a line with several events be several lines. */
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
