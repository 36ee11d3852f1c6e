import type { LaneSpans, ThreadSpan } from './spans.ts';

/** A lane with its position. */
export interface Placed {
  lane: LaneSpans;
  y: number;
  height: number;
  rows: LaneRows;
}

interface LaneRows {
  /** Whether its turns' parts have rows. */
  parts: boolean;
  /** The threads that have a row. */
  threads: PackedThreads['threads'];
  threadsAt: number;
}

/** The bars of turns in a lane. */
export const BAR_TOP_PX = 10;
export const BAR_PX = 15;
const PEOPLE_PX = 24;
const LANE_PX = 32;
/** Rows of the turns' parts: the model, and tools that ran at the same time. */
export const PARTS_AT_PX = 33;
export const PART_ROW_PX = 15;
export const MAX_TOOL_ROWS = 3;
export const THREAD_ROW_PX = 18;
const MAX_THREAD_ROWS = 6;
const SPACE_PX = 4;

export interface PlacedLanes {
  lanes: Placed[];
  height: number;
}

/** Depends on the whole log, not on the view, so that lanes keep their height while time passes. */
export function placeLanes(lanes: readonly LaneSpans[], expanded: ReadonlySet<string>): PlacedLanes {
  let y = 0;
  const placed = lanes.map((lane): Placed => {
    const parts = lane.agent !== null && expanded.has(lane.agent);
    const toolRows = parts ? mostTools(lane) : 0;
    const packed = packThreads(lane.threads);
    const threadRows = Math.min(MAX_THREAD_ROWS, packed.rows);
    const threads = packed.threads.filter(({ row }) => row < threadRows);
    const threadsAt = parts ? PARTS_AT_PX + (1 + toolRows) * PART_ROW_PX + SPACE_PX : LANE_PX;
    const below =
      parts || threadRows > 0
        ? threadsAt + threadRows * THREAD_ROW_PX + (threadRows > 0 ? SPACE_PX : 0)
        : LANE_PX;
    const height = lane.agent === null ? PEOPLE_PX : below;
    const at = y;
    y += height;
    return { lane, y: at, height, rows: { parts, threads, threadsAt } };
  });
  return { lanes: placed, height: y };
}

function mostTools({ turns }: LaneSpans): number {
  let most = 0;
  for (const { parts } of turns) {
    if (parts.length > 0) most = Math.max(most, rowCount(parts.filter(({ kind }) => kind === 'tool')));
    if (most >= MAX_TOOL_ROWS) return MAX_TOOL_ROWS;
  }
  return most;
}

interface Stretch {
  start: number;
  end: number;
}

/** Puts periods into as few rows as they need, each into the first free row. */
export function packRows<T extends Stretch>(spans: readonly T[]): T[][] {
  const rows: T[][] = [];
  for (const span of spans.toSorted((a, b) => a.start - b.start)) {
    const free = rows.find((row) => (row.at(-1)?.end ?? 0) <= span.start);
    if (free) free.push(span);
    else rows.push([span]);
  }
  return rows;
}

interface PackedThreads {
  rows: number;
  threads: { span: ThreadSpan; row: number }[];
}

/** Threads in rows: nested threads stand directly below the outer one, with nothing else beside them. */
export function packThreads(threads: readonly ThreadSpan[]): PackedThreads {
  const placed: PackedThreads['threads'] = [];
  const ends: number[] = [];
  for (const { span, inner, start, end } of threads.map(blockOf).toSorted((a, b) => a.start - b.start)) {
    let free = 0;
    let next = 0;
    while (free <= inner.rows) free = (ends[next++] ?? Number.NEGATIVE_INFINITY) <= start ? free + 1 : 0;
    const row = next - free;
    for (let each = row; each < next; each++) ends[each] = end;
    placed.push({ span, row });
    for (const each of inner.threads) placed.push({ span: each.span, row: row + 1 + each.row });
  }
  return { rows: ends.length, threads: placed };
}

function blockOf(span: ThreadSpan) {
  const inner = packThreads(span.nested);
  const spans = [span, ...inner.threads.map((each) => each.span)];
  const start = Math.min(...spans.map((each) => each.start));
  return { span, inner, start, end: Math.max(...spans.map((each) => each.end)) };
}

function rowCount(spans: readonly Stretch[]): number {
  return packRows(spans).length;
}
