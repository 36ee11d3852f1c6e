import { MARK } from '../../../../src/library/projection/time-page.ts';
import type { Arrow } from '../../../../src/library/projection/model.ts';
import { type ArrowLine, layArrows } from './arrows.ts';
import {
  BAR_PX,
  BAR_TOP_PX,
  MAX_TOOL_ROWS,
  packRows,
  PART_ROW_PX,
  PARTS_AT_PX,
  type Placed,
  type PlacedLanes,
  THREAD_ROW_PX,
} from './rows.ts';
import { type Gap, lastBefore, type Scale } from './scale.ts';
import type { LaneSpans, Marks, Part, ThreadSpan, TurnSpan } from './spans.ts';
import { type Tick, ticksOf } from './ticks.ts';

/** The part of the timeline that is drawn: in pixels, horizontally from `left`, vertically from `top`. */
export interface View {
  scale: Scale;
  left: number;
  width: number;
  top: number;
  height: number;
}

/** What a click on a box or mark selects. */
export type Target =
  | { kind: 'turn'; turn: TurnSpan; thread: string | null }
  | { kind: 'part'; turn: TurnSpan; part: Part; thread: string | null }
  | { kind: 'thread'; span: ThreadSpan }
  | { kind: 'event'; seq: number }
  | { kind: 'many'; agent: string; count: number; failed: number; from: number; to: number };

/** How a box is painted: turns by status, parts by kind. */
export type Tone = TurnSpan['status'] | Part['kind'] | 'queued' | 'wait' | 'thread' | 'events';

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
  tone: Tone;
  /** Text inside the box, if there is room. */
  label: string;
  /** Share of its time that is used, 0 to 1; below 1 where many turns are too narrow to draw. */
  density: number;
  isFailed: boolean;
  target: Target | null;
}

export interface Mark {
  x: number;
  y: number;
  kind: 'talk' | 'problem' | 'compaction' | 'task';
  seq: number;
}

export interface Layout {
  lanes: readonly Placed[];
  /** Height of all lanes. */
  height: number;
  /** In the order in which they are painted. */
  boxes: Box[];
  marks: Mark[];
  arrows: ArrowLine[];
  gaps: Gap[];
  ticks: Tick[];
}

/** Fewer letters of a word than these say nothing. */
const LEAST_LETTERS = 3;

/** A label in so many characters: its words may be cut, its number is whole or left out. */
export function labelIn(label: string, most: number): string {
  if (label.length <= most) return label;
  const [number = ''] = /^\d+(?= |$)/.exec(label) ?? [];
  if (most > number.length + LEAST_LETTERS + 1) return `${label.slice(0, most - 1)}…`;
  return number.length <= most ? number : '';
}

export const PART_WORDS: Record<Part['kind'], string> = {
  build: 'prompt',
  relief: 'compaction',
  admission: 'waits for a slot',
  first_token: 'first word',
  stream: 'stream',
  back_off: 'wait before retry',
  tool: 'tool',
};

/** A lane from top to bottom: marks, the turns, a strip of their parts; then rows of parts, tools and threads. */
export const MARK_PX = 5;
const STRIP_TOP_PX = 26;
const STRIP_PX = 3;
const ROW_BAR_PX = 13;
/** Narrower turns are drawn together, in columns of this width. */
const NARROW_PX = 2;
const COLUMN_PX = 3;
export const MARK_ROOM_PX = 7;

/** Computes the boxes in the view's pixels. Linear in what is visible. */
export function layoutTimeline(placed: PlacedLanes, arrows: readonly Arrow[], view: View): Layout {
  const { lanes, height } = placed;
  const paint: Paint = { view, boxes: [], marks: [] };
  for (const lane of lanes) {
    const y = lane.y - view.top;
    if (y > view.height || y + lane.height < 0) continue;
    layLane(paint, lane, y);
  }
  const { scale, left, width } = view;
  const shift = <T extends { x: number }>(each: T): T => ({ ...each, x: each.x - left });
  return {
    lanes,
    height,
    boxes: paint.boxes,
    marks: paint.marks,
    arrows: layArrows(arrows, lanes, { ...view, xOf: (time) => xIn(view, time) }),
    gaps: scale.gapsIn(left, left + width).map(shift),
    ticks: ticksOf(scale, left, left + width).map(shift),
  };
}

interface Paint {
  view: View;
  boxes: Box[];
  marks: Mark[];
}

const PLAIN = { label: '', density: 1, isFailed: false, target: null };

function xIn({ scale, left }: View, time: number): number {
  return scale.xOf(time) - left;
}

function layLane(paint: Paint, { lane, rows }: Placed, y: number): void {
  for (const { start, end, task } of lane.waits)
    addBox(paint, {
      start,
      end,
      tone: 'wait',
      y: y + BAR_TOP_PX + 4,
      height: 7,
      target: { kind: 'event', seq: task.seq },
    });
  layTurns(paint, lane.turns, y, rows.parts ? y : null);
  layMarks(paint, lane, y);
  for (const { span, row } of rows.threads) layThread(paint, span, y + rows.threadsAt + row * THREAD_ROW_PX);
}

interface NewBox extends Partial<Box> {
  start: number;
  end: number;
  tone: Tone;
  y: number;
  height: number;
  least?: number;
}

/** Adds a box if any of it is visible. Its edges stay near the view, because canvases are inexact far outside. */
function addBox({ view, boxes }: Paint, { start, end, least = 1, ...box }: NewBox): void {
  const x = xIn(view, start);
  const right = Math.max(xIn(view, end), x + least);
  if (right < 0 || x > view.width) return;
  const from = Math.max(-EDGE_PX, x);
  boxes.push({ ...PLAIN, ...box, x: from, width: Math.min(view.width + EDGE_PX, right) - from });
}

const EDGE_PX = 8;

/** The visible ones of sorted spans. */
function visible<T extends { start: number; end: number }>(
  spans: readonly T[],
  { scale, left, width }: View,
): readonly T[] {
  const from = scale.timeAt(left);
  const to = scale.timeAt(left + width);
  // Spans of one lane hardly overlap, so only one further back may still reach into the view.
  const first = Math.max(0, lastBefore(spans, ({ start }) => start <= from) - 1);
  return spans.slice(first, lastBefore(spans, ({ start }) => start <= to) + 1);
}

function layTurns(paint: Paint, turns: readonly TurnSpan[], y: number, rowsAt: number | null): void {
  const { view } = paint;
  let column: Column | null = null;
  for (const turn of visible(turns, view)) {
    const x = xIn(view, turn.start);
    const width = xIn(view, turn.end) - x;
    if (width < NARROW_PX && turn.status !== 'running') {
      if (column && x < column.x + COLUMN_PX) addTo(column, turn, width);
      else {
        if (column) addColumn(paint, column, y);
        column = columnOf(turn, x, width);
      }
      continue;
    }
    if (column) addColumn(paint, column, y);
    column = null;
    layTurn(paint, turn, { y, rowsAt, thread: null });
  }
  if (column) addColumn(paint, column, y);
}

/** Turns that are too narrow to be drawn one by one. */
interface Column {
  x: number;
  turns: TurnSpan[];
  taken: number;
  failed: number;
}

function columnOf(turn: TurnSpan, x: number, width: number): Column {
  return { x, turns: [turn], taken: width, failed: turn.status === 'failed' ? 1 : 0 };
}

function addTo(column: Column, turn: TurnSpan, width: number): void {
  column.turns.push(turn);
  column.taken += width;
  if (turn.status === 'failed') column.failed += 1;
}

const LEAST_DENSITY = 0.35;

function addColumn({ view, boxes }: Paint, { x, turns, taken, failed }: Column, y: number): void {
  const [first] = turns;
  const last = turns.at(-1);
  if (!first || !last || x + COLUMN_PX < 0 || x > view.width) return;
  const target: Target =
    turns.length === 1
      ? { kind: 'turn', turn: first, thread: null }
      : { kind: 'many', agent: first.agent, count: turns.length, failed, from: first.start, to: last.end };
  boxes.push({
    x,
    y: y + BAR_TOP_PX,
    width: COLUMN_PX - 0.5,
    height: BAR_PX,
    tone: 'done',
    label: '',
    density: Math.max(LEAST_DENSITY, Math.min(1, taken / COLUMN_PX)),
    isFailed: failed > 0,
    target,
  });
}

/** The wait before a turn, the turn, and its parts: in a strip, or in rows of their own below. */
function layTurn(
  paint: Paint,
  turn: TurnSpan,
  { y, rowsAt, thread }: { y: number; rowsAt: number | null; thread: string | null },
): void {
  const target: Target = { kind: 'turn', turn, thread };
  if (turn.queued !== null && turn.queued < turn.start)
    addBox(paint, {
      start: turn.queued,
      end: turn.start,
      tone: 'queued',
      y: y + BAR_TOP_PX,
      height: BAR_PX,
      target,
    });
  const label = `${turn.number} ${turn.error ?? (turn.status === 'done' ? turn.said : turn.status)}`.trim();
  addBox(paint, {
    start: turn.start,
    end: turn.end,
    least: NARROW_PX,
    tone: turn.status,
    y: y + BAR_TOP_PX,
    height: BAR_PX,
    label,
    isFailed: turn.status === 'failed',
    target,
  });
  for (const part of turn.parts) {
    // Parts are timed by another clock than the log's, so one may begin after its turn ended. It is not drawn.
    if (part.start > turn.end) continue;
    const of: Target = { kind: 'part', turn, part, thread };
    const end = Math.min(part.end, turn.end);
    const box = { start: part.start, end, tone: part.kind, isFailed: part.isFailed, target: of };
    addBox(paint, { ...box, y: y + STRIP_TOP_PX, height: STRIP_PX });
  }
  if (rowsAt !== null) layParts(paint, turn, rowsAt);
}

/** The parts of a turn in rows: the model in the first, below it tools, in separate rows if they ran at the same time. */
function layParts(paint: Paint, turn: TurnSpan, y: number): void {
  const model = turn.parts.filter(({ kind }) => kind !== 'tool');
  const tools = packRows(turn.parts.filter(({ kind }) => kind === 'tool'));
  for (const [row, parts] of [model, ...tools].entries()) {
    if (row > MAX_TOOL_ROWS) break;
    for (const part of parts)
      addBox(paint, {
        start: part.start,
        end: part.end,
        tone: part.kind,
        isFailed: part.isFailed,
        y: y + PARTS_AT_PX + row * PART_ROW_PX,
        height: ROW_BAR_PX,
        label: part.kind === 'tool' ? part.name : PART_WORDS[part.kind],
        target: { kind: 'part', turn, part, thread: null },
      });
  }
}

function layThread(paint: Paint, span: ThreadSpan, y: number): void {
  const { task, start, end, turns } = span;
  const label = turns.length === 0 ? `→ ${task.assignee ?? ''} ${task.text}`.trimEnd() : '';
  addBox(paint, {
    start,
    end,
    tone: 'thread',
    y,
    height: ROW_BAR_PX + 2,
    label,
    target: { kind: 'thread', span },
  });
  for (const turn of visible(turns, paint.view))
    addBox(paint, {
      start: turn.start,
      end: turn.end,
      least: NARROW_PX,
      tone: turn.status,
      y: y + 1,
      height: ROW_BAR_PX,
      label: `${turn.agent} ${turn.number}`,
      isFailed: turn.status === 'failed',
      target: { kind: 'turn', turn, thread: task.thread },
    });
}

/** Marks of messages and problems. Where marks do not fit, a problem replaces another mark. */
function layMarks(paint: Paint, { marks, turns, agent }: LaneSpans, y: number): void {
  const { view } = paint;
  let crowded = 0;
  let problem = -1;
  for (let index = firstMark(marks, view), next = 0; index < marks.at.length; index = next) {
    const x = xIn(view, marks.at[index] ?? 0);
    if (x > view.width) break;
    next = firstFrom(marks, view, { x: x + MARK_ROOM_PX, after: index });
    crowded += next - index - 1;
    if (problem < index) problem = indexOfProblem(marks, index);
    const isProblem = problem < next;
    const shown = isProblem ? problem : index;
    paint.marks.push({
      x,
      y: y + MARK_PX,
      kind: isProblem ? 'problem' : 'talk',
      seq: marks.seq[shown] ?? 0,
    });
  }
  // A log without turns, such as an imported one, shows its events instead.
  if (turns.length === 0 && crowded > 0 && agent !== null) layEvents(paint, marks, y);
}

/** Infinity if there is none from that index on. */
function indexOfProblem({ mark }: Marks, from: number): number {
  const found = mark.indexOf(MARK.problem, from);
  return found < 0 ? Number.POSITIVE_INFINITY : found;
}

/** The first mark at or after `x`, and after the mark `after`. A search, because a hundred thousand may be in view. */
function firstFrom({ at }: Marks, { scale, left }: View, { x, after }: { x: number; after: number }): number {
  const time = scale.timeAt(left + x);
  return (
    Math.max(
      after,
      lastBefore(at, (each) => each < time),
    ) + 1
  );
}

function firstMark({ at }: Marks, { scale, left }: View): number {
  const from = scale.timeAt(left - MARK_ROOM_PX);
  return Math.max(
    0,
    lastBefore(at, (each) => each < from),
  );
}

function layEvents(paint: Paint, marks: Marks, y: number): void {
  const { view } = paint;
  const counts = new Map<number, number>();
  for (let index = firstMark(marks, view), next = 0; index < marks.at.length; index = next) {
    const x = xIn(view, marks.at[index] ?? 0);
    if (x > view.width) break;
    const column = Math.floor(x / COLUMN_PX);
    next = firstFrom(marks, view, { x: (column + 1) * COLUMN_PX, after: index });
    counts.set(column, (counts.get(column) ?? 0) + next - index);
  }
  const most = Math.max(1, ...counts.values());
  for (const [column, count] of counts) {
    const density = LEAST_DENSITY + (1 - LEAST_DENSITY) * (count / most);
    const box = { ...PLAIN, x: column * COLUMN_PX, width: COLUMN_PX - 0.5, density, tone: 'events' as const };
    paint.boxes.push({ ...box, y: y + BAR_TOP_PX, height: BAR_PX });
  }
}
