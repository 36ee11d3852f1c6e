import { computed, signal } from '@preact/signals';
import type { Row } from '../../../src/projection/model.ts';
import { everyRow } from './every-row.ts';
import { onEvents } from './live.ts';
import type { RowSource } from './row-source.ts';
import { route } from './route.ts';
import { head } from './selection.ts';
import { rowOf } from '../../../src/projection/row.ts';

/** Above this many events a dot would be smaller than a pixel; the known turns, arrows and marks must suffice. */
const MAX_DOTS = 600;
const NONE: readonly Row[] = [];

const source = signal<{ conversation: string; rows: RowSource } | null>(null);

/** Opens the source of the timeline's dots. Returns a function that closes it. */
export function openTimelineRows(conversation: string): () => void {
  const rows = everyRow(conversation, head.peek());
  source.value = { conversation, rows };
  const stop = onEvents((events) => rows.arrived(events.map(rowOf), events.at(-1)?.seq ?? 0));
  return () => {
    stop();
    rows.close();
    source.value = null;
  };
}

const version = computed(() => source.value?.rows.version.value ?? 0);

export function timelineRows({ from, to }: { from: number; to: number }): readonly Row[] {
  void version.value;
  const rows = source.value?.rows;
  if (!rows || to - from > MAX_DOTS) return NONE;
  const { at } = route.value;
  const last = Math.min(to, at ?? head.value);
  rows.need(from - 1, last);
  const found: Row[] = [];
  for (let seq = from; seq <= last; seq++) {
    const line = rows.lineAt(seq - 1);
    if (line && !('count' in line)) found.push(line);
  }
  return found;
}
