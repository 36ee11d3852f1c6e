import { computed, signal } from '@preact/signals';
import { live, shown } from '../live.ts';
import { isPast } from '../past.ts';
import { loadOlder, logTimes, threads, hasOlder, timeOfEvent } from './loaded-times.ts';
import { placeLanes } from './rows.ts';
import { createScale, MIN_MS_PER_PX, type Range, type Zoom, zoomAt, zoomToFit } from './scale.ts';
import { spansOf } from './spans.ts';

/** The period that is shown. With `at` null, the end of the log stays at the right edge. */
type Place =
  | { kind: 'newest' }
  | { kind: 'all' }
  | { kind: 'zoomed'; zoom: Zoom; at: number | null; x: number };

const place = signal<Place>({ kind: 'newest' });
export const isAtNewest = (): boolean => place.peek().kind === 'newest';
/** Size of the drawing, in pixels. */
export const width = signal(600);
/** Agents whose turns are shown with rows for their parts. */
export const expanded = signal<ReadonlySet<string>>(new Set());

/** Increases while something runs, so that its growth is drawn. */
export const beat = signal(0);
let heardAt = 0;
let heard: unknown = null;

/** The current time by the server's clock: the time of its last event, plus the time since it came. */
function now(): number {
  const projection = live.peek();
  if (projection !== heard) {
    heard = projection;
    heardAt = Date.now();
  }
  return (projection?.at ?? 0) + Date.now() - heardAt;
}

export const spans = computed(() => {
  void beat.value;
  const projection = shown.value;
  if (!projection) return null;
  const moment = isPast.value || projection.totals.running === 0 ? projection.at : now();
  return spansOf(projection, logTimes.value.times, { now: moment, threads: threads.value });
});

export const placed = computed(() => (spans.value ? placeLanes(spans.value.lanes, expanded.value) : null));

const LEFT_PX = 12;
const RIGHT_PX = 28;
const whole = computed<Zoom>(() => {
  const all = spans.value;
  const room = width.value - LEFT_PX - RIGHT_PX;
  return all ? zoomToFit(all.silences, [all.from, all.to], room) : { msPerPx: 1, gapPx: 1 };
});

/** Number of turns that are shown at first. */
const FIRST_TURNS = 40;

const firstZoom = computed<Zoom>(() => {
  const all = spans.value;
  const turns = shown.value?.turns ?? [];
  const from = turns[turns.length - FIRST_TURNS];
  if (!all || !from) return whole.value;
  return zoomToFit(all.silences, [from.startedAt, all.to], width.value - LEFT_PX - RIGHT_PX);
});

const zoomNow = computed(() => {
  const shownPlace = place.value;
  if (shownPlace.kind === 'zoomed') return shownPlace.zoom;
  return shownPlace.kind === 'all' ? whole.value : firstZoom.value;
});

export const view = computed(() => {
  const all = spans.value;
  if (!all) return null;
  const zoom = zoomNow.value;
  const scale = createScale(all.from, all.silences, zoom);
  const { at, x } = place.value.kind === 'zoomed' ? place.value : { at: null, x: 0 };
  const end = scale.xOf(all.to) + RIGHT_PX;
  const last = Math.max(-LEFT_PX, end - width.value);
  const left = at === null ? last : Math.min(last, Math.max(-LEFT_PX, scale.xOf(at) - x));
  return { scale, left, width: width.value };
});

/** Whether the whole log is in view. */
export const isAllSeen = computed(() => {
  const seen = view.value;
  if (logTimes.value.times.first > 1) return false;
  return seen !== null && seen.left <= 0 && zoomNow.value.msPerPx >= whole.value.msPerPx * 0.999;
});

function setPlace(zoom: Zoom, at: number, x: number): void {
  place.value = { kind: 'zoomed', zoom, at, x };
  const all = spans.peek();
  const seen = view.peek();
  if (!all || !seen) return;
  // A view that reaches the end follows it from then on.
  if (seen.scale.xOf(all.to) + RIGHT_PX <= seen.left + width.peek() + 0.5)
    place.value = { kind: 'zoomed', zoom, at: null, x: 0 };
  if (seen.left <= LEFT_PX && hasOlder()) loadOlder();
}

/** A factor below 1 zooms in. The moment at `x` stays in place. */
export function zoomBy(factor: number, x = width.peek() / 2): void {
  const seen = view.peek();
  if (!seen) return;
  const most = whole.peek().msPerPx;
  const msPerPx = Math.max(MIN_MS_PER_PX, Math.min(most, zoomNow.peek().msPerPx * factor));
  setPlace(zoomAt(msPerPx, whole.peek()), seen.scale.timeAt(seen.left + x), x);
}

export function panBy(px: number): void {
  const seen = view.peek();
  if (seen) setPlace(zoomNow.peek(), seen.scale.timeAt(seen.left + px), 0);
}

export function fitAll(): void {
  place.value = { kind: 'all' };
  loadOlder({ all: true });
}

/** Shows a period with some of its surroundings. */
export function fitRange([from, to]: Range): void {
  const all = spans.peek();
  if (!all) return;
  const room = width.peek();
  const margin = Math.max(1, (to - from) / 10);
  const zoom = zoomToFit(all.silences, [from - margin, to + margin], room * 0.9);
  setPlace(zoom, from, room * 0.1);
}

const NARROW_PX = 4;
const WIDE_PX = 120;

/** Scrolls a period into view, and makes it wide enough to be seen. */
export function reveal([from, to]: Range): void {
  const seen = view.peek();
  if (!seen) return;
  const [start, end] = [seen.scale.xOf(from) - seen.left, seen.scale.xOf(to) - seen.left];
  const isNarrow = to > from && end - start < NARROW_PX;
  if (!isNarrow && end >= 0 && start <= seen.width - LEFT_PX) return;
  const msPerPx = Math.max(MIN_MS_PER_PX, (to - from) / WIDE_PX);
  const zoom = isNarrow ? zoomAt(msPerPx, whole.peek()) : zoomNow.peek();
  setPlace(zoom, from, seen.width / 3);
}

export function resetView(): void {
  place.value = { kind: 'newest' };
  expanded.value = new Set();
}

/** If the time of the event is not loaded, older events are loaded. */
export function revealEvent(seq: number): void {
  const at = timeOfEvent(seq);
  if (at !== null) reveal([at, at]);
  else if (hasOlder()) loadOlder();
}
