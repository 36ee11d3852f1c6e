import { computed, signal } from '@preact/signals';
import { head } from './selection.ts';

/** Number of events the timeline spans, and the last of them; null: it follows the log. */
const span = signal<number | null>(null);
const last = signal<number | null>(null);

const FIRST_SPAN = 120;
const MIN_SPAN = 8;

export const timelineRange = computed(() => {
  const count = Math.min(span.value ?? FIRST_SPAN, Math.max(head.value, MIN_SPAN));
  const to = Math.max(count, last.value ?? head.value);
  return { from: to - count + 1, to };
});

export const isWholeSeen = computed(
  () => timelineRange.value.from <= 1 && timelineRange.value.to >= head.value,
);

/** A `factor` below 1 zooms in. The point at `share` of the width stays in place. */
export function zoom(factor: number, share = 1): void {
  const { from, to } = timelineRange.peek();
  const count = to - from + 1;
  const next = Math.round(Math.min(Math.max(head.peek(), MIN_SPAN), Math.max(MIN_SPAN, count * factor)));
  const end = from + count * share + next * (1 - share);
  span.value = next;
  setEnd(Math.round(end) - 1);
}

export function pan(by: number): void {
  setEnd(timelineRange.peek().to + Math.round(by));
}

export function fit(): void {
  span.value = head.peek();
  last.value = null;
}

/** Scrolls as little as needed, and not at all if the event is visible. */
export function reveal(seq: number): void {
  const { from, to } = timelineRange.peek();
  if (seq > to) setEnd(seq + Math.round((to - from) / 4));
  else if (seq < from) setEnd(seq + Math.round(((to - from) * 3) / 4));
}

export function resetTimeline(): void {
  span.value = null;
  last.value = null;
}

function setEnd(to: number): void {
  last.value = to >= head.peek() ? null : Math.max(1, to);
}
