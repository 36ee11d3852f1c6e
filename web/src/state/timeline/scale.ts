/**
 * Wall-clock time along x. A period in which nothing happened takes at most `gapPx`, so that nights do not use up the width.
 * Positions are in pixels from the first moment; a view is a window over them.
 */
export interface Scale {
  readonly msPerPx: number;
  xOf(time: number): number;
  timeAt(x: number): number;
  /** The shortened silences between two positions. */
  gapsIn(from: number, to: number): Gap[];
}

export interface Gap {
  x: number;
  width: number;
  from: number;
  to: number;
}

/** Periods without any event or turn, ascending. Ms since the epoch. */
export interface Silences {
  from: Float64Array;
  to: Float64Array;
}

export interface Zoom {
  msPerPx: number;
  /** Most pixels of a silence. */
  gapPx: number;
}

/** Greatest and least `gapPx`, and the share of the width that gaps may take when everything is shown. */
const MAX_GAP_PX = 72;
const MIN_GAP_PX = 3;
const GAP_SHARE = 0.3;

/** The silences between intervals that are sorted by their start. */
export function silencesOf(starts: ArrayLike<number>, ends: ArrayLike<number>): Silences {
  const from = new Float64Array(starts.length);
  const to = new Float64Array(starts.length);
  let count = 0;
  let last = starts.length > 0 ? (starts[0] as number) : 0;
  for (let index = 0; index < starts.length; index++) {
    const start = starts[index] as number;
    if (start > last) {
      from[count] = last;
      to[count++] = start;
    }
    last = Math.max(last, ends[index] as number);
  }
  return { from: from.slice(0, count), to: to.slice(0, count) };
}

export function createScale(origin: number, silences: Silences, { msPerPx, gapPx }: Zoom): Scale {
  const gaps = gapsOf(origin, silences, { msPerPx, gapPx });
  const gapAt = (index: number) =>
    index < 0 ? null : { from: gaps.from[index] ?? 0, to: gaps.to[index] ?? 0, x: gaps.x[index] ?? 0 };
  return {
    msPerPx,
    xOf(time) {
      const gap = gapAt(lastBefore(gaps.from, (each) => each <= time));
      if (!gap) return (time - origin) / msPerPx;
      if (time >= gap.to) return gap.x + gapPx + (time - gap.to) / msPerPx;
      return gap.x + (gapPx * (time - gap.from)) / (gap.to - gap.from);
    },
    timeAt(x) {
      const gap = gapAt(lastBefore(gaps.x, (each) => each <= x));
      if (!gap) return origin + x * msPerPx;
      if (x >= gap.x + gapPx) return gap.to + (x - gap.x - gapPx) * msPerPx;
      return gap.from + ((x - gap.x) / gapPx) * (gap.to - gap.from);
    },
    gapsIn(from, to) {
      const found: Gap[] = [];
      const first = Math.max(
        0,
        lastBefore(gaps.x, (each) => each <= from),
      );
      for (let index = first; index < gaps.x.length; index++) {
        const gap = gapAt(index);
        if (!gap || gap.x >= to) break;
        if (gap.x + gapPx > from) found.push({ ...gap, width: gapPx });
      }
      return found;
    },
  };
}

/** The shortened silences, in typed arrays: each step of a zoom computes them anew, and there may be 100,000. */
function gapsOf(
  origin: number,
  silences: Silences,
  { msPerPx, gapPx }: Zoom,
): Silences & { x: Float64Array } {
  const long = gapPx * msPerPx;
  const most = silences.from.length;
  const [froms, tos, xs] = [new Float64Array(most), new Float64Array(most), new Float64Array(most)];
  let count = 0;
  let saved = 0;
  for (let index = 0; index < most; index++) {
    const from = silences.from[index] as number;
    const to = silences.to[index] as number;
    if (to - from <= long) continue;
    froms[count] = from;
    tos[count] = to;
    xs[count++] = (from - origin) / msPerPx - saved;
    saved += (to - from) / msPerPx - gapPx;
  }
  return { from: froms.subarray(0, count), to: tos.subarray(0, count), x: xs.subarray(0, count) };
}

/** Pixels between two moments, and how many of them are gaps. */
function lengthOf(
  silences: Silences,
  [from, to]: Range,
  { msPerPx, gapPx }: Zoom,
): { px: number; gaps: number } {
  const long = gapPx * msPerPx;
  let ms = to - from;
  let gaps = 0;
  for (let index = 0; index < silences.from.length; index++) {
    const start = Math.max(from, silences.from[index] as number);
    const end = Math.min(to, silences.to[index] as number);
    if (end - start <= long) continue;
    ms -= end - start;
    gaps += gapPx;
  }
  return { px: gaps + ms / msPerPx, gaps };
}

export type Range = readonly [number, number];

const HALVINGS = 48;

/** The zoom at which a period is `width` pixels long, for gaps of a given length. */
function zoomWith(gapPx: number, silences: Silences, range: Range, width: number): Zoom {
  let low = Math.log(MIN_MS_PER_PX);
  let high = Math.log(Math.max(2 * MIN_MS_PER_PX, (range[1] - range[0]) / width));
  for (let step = 0; step < HALVINGS; step++) {
    const middle = (low + high) / 2;
    if (lengthOf(silences, range, { msPerPx: Math.exp(middle), gapPx }).px > width) low = middle;
    else high = middle;
  }
  return { msPerPx: Math.exp(high), gapPx };
}

/** The zoom that shows a whole period. The more gaps there are, the narrower each is. */
export function zoomToFit(silences: Silences, range: Range, width: number): Zoom {
  const across = Math.max(1, width);
  const worth = worthCollapsing(silences, (range[1] - range[0]) / across / 50);
  let gapPx = MAX_GAP_PX;
  for (;;) {
    const zoom = zoomWith(gapPx, worth, range, across);
    if (gapPx <= MIN_GAP_PX || lengthOf(worth, range, zoom).gaps <= GAP_SHARE * across) return zoom;
    gapPx = Math.max(MIN_GAP_PX, gapPx / 2);
  }
}

/** Leaves out silences that are too short to matter. */
function worthCollapsing({ from, to }: Silences, least: number): Silences {
  const isLong = (_: number, index: number) => (to[index] as number) - (from[index] as number) >= least;
  return { from: from.filter(isLong), to: to.filter(isLong) };
}

/** The zoom for another number of ms per pixel: gaps grow as well. `whole`: the zoom that shows everything. */
export function zoomAt(msPerPx: number, whole: Zoom): Zoom {
  const gapPx = whole.gapPx * Math.max(1, whole.msPerPx / msPerPx);
  return { msPerPx, gapPx: Math.min(MAX_GAP_PX, gapPx) };
}

/** 10 ms across 1,000 pixels. */
export const MIN_MS_PER_PX = 0.01;

interface Items<T> {
  readonly length: number;
  readonly [index: number]: T;
}

/** Index of the last item for which `holds` is true, in a list where all such items come first; -1 for none. */
export function lastBefore<T>(items: Items<T>, holds: (item: T) => boolean): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(items[middle] as T)) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
