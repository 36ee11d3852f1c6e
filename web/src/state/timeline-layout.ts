import type { Projection, Row, TurnView } from '../../../src/projection/model.ts';

/**
 * Lanes over the log: x is the seq, so quiet hours take no space. Pure; contains only what is visible. Sizes in
 * pixels.
 */
export interface Layout {
  bars: Bar[];
  dots: Dot[];
  arrows: LaidArrow[];
  /** Times where there is space for them, each after `gap` ms of silence. `isEnd`: the label stands to its left. */
  times: { x: number; at: number; gap: number | null; isEnd: boolean }[];
}

export interface Bar {
  turn: TurnView;
  x: number;
  width: number;
  lane: number;
  /** Space until the next bar of the lane begins. */
  room: number;
}

export interface Dot {
  seq: number;
  x: number;
  lane: number;
  kind: 'talk' | 'problem' | 'compaction' | 'task';
  title: string;
  turn: string | null;
  /** True on a turn's bar, whose text it must not cover. */
  isOnBar: boolean;
}

export interface LaidArrow {
  seq: number;
  x: number;
  from: number;
  to: number;
  kind: 'message' | 'handoff' | 'delegation';
  title: string;
}

export interface View {
  from: number;
  to: number;
  width: number;
  /** Visible lanes: the first, and the end, exclusive. */
  lanes: [number, number];
}

export const LANE_PX = 28;
/** People share the first lane. */
export const PEOPLE = 0;
const MIN_BAR_PX = 3;
const MAX_ARROWS = 400;
const LABEL_PX = 76;
const GAP_MS = 5 * 60_000;

export function laneOf(projection: Projection): Map<string, number> {
  return new Map(Object.keys(projection.agents).map((id, index) => [id, index + 1]));
}

export function xOf(seq: number, { from, to, width }: View): number {
  return ((seq - from) / Math.max(1, to - from + 1)) * width;
}

export function layoutTimeline(projection: Projection, rows: readonly Row[], view: View): Layout {
  const lanes = laneOf(projection);
  const [first, end] = view.lanes;
  const isSeen = (lane: number) => lane >= first && lane < end;
  const middle = (seq: number) => xOf(seq + 0.5, view);
  const isInside = (seq: number) => seq >= view.from && seq <= view.to;

  const bars = projection.turns.flatMap((turn): Bar[] => {
    const lane = lanes.get(turn.agent) ?? -1;
    const until = turn.to ?? projection.seq;
    if (!isSeen(lane) || turn.from > view.to || until < view.from) return [];
    const x = xOf(turn.from, view);
    const width = Math.max(MIN_BAR_PX, xOf(until + 1, view) - x - 1);
    return [{ turn, lane, x, width, room: view.width - x }];
  });
  const next = new Map<number, number>();
  for (const bar of bars.toReversed()) {
    bar.room = (next.get(bar.lane) ?? view.width) - bar.x;
    next.set(bar.lane, bar.x);
  }

  const arrows = projection.arrows
    .filter(({ seq, to }) => isInside(seq) && to.length > 0)
    .slice(-MAX_ARROWS)
    .flatMap(({ seq, kind, from, isAgent, to }): LaidArrow[] => {
      const start = isAgent ? (lanes.get(from) ?? PEOPLE) : PEOPLE;
      const named = to.slice(0, 16).map((agent) => lanes.get(agent) ?? -1);
      const title = `${seq}: ${from} ${arrowWord(kind)} ${to.join(', ')}`;
      return named
        .filter((lane) => lane >= 0 && lane !== start && (isSeen(lane) || isSeen(start)))
        .map((lane) => ({ seq, x: middle(seq), from: start, to: lane, kind: arrowKind(kind), title }));
    });

  const isOnBar = (seq: number, at: number) =>
    bars.some(({ lane, turn: { from, to } }) => lane === at && from <= seq && seq <= (to ?? projection.seq));
  const dot = (at: Omit<Dot, 'x' | 'isOnBar'>): Dot[] =>
    isInside(at.seq) && isSeen(at.lane)
      ? [{ ...at, x: middle(at.seq), isOnBar: isOnBar(at.seq, at.lane) }]
      : [];
  const dots = [
    ...rows.flatMap(({ seq, author, agent, isAgent, level, summary, turn }) => {
      if (level !== 'talk' && level !== 'problem') return [];
      const lane = isAgent || agent !== null ? (lanes.get(agent ?? author) ?? PEOPLE) : PEOPLE;
      return dot({ seq, lane, kind: level, title: `${seq}: ${summary}`, turn });
    }),
    ...projection.tasks.flatMap(({ seq, owner, kind, text }) =>
      dot({
        seq,
        lane: lanes.get(owner) ?? PEOPLE,
        kind: 'task',
        title: `${seq}: ${kind} ${text}`,
        turn: null,
      }),
    ),
    ...projection.compactions.flatMap(({ seq, agent, reduced, phase }) =>
      dot({
        seq,
        lane: lanes.get(agent) ?? PEOPLE,
        kind: 'compaction',
        title: `${seq}: compaction ${reduced === null ? phase : `made room, ${Math.round(reduced)}% smaller`}`,
        turn: null,
      }),
    ),
  ];
  return { bars, dots, arrows, times: timesOf(projection, rows, view) };
}

function arrowKind(kind: string): LaidArrow['kind'] {
  if (kind === 'handoff') return 'handoff';
  return kind.startsWith('delegation') ? 'delegation' : 'message';
}

function arrowWord(kind: string): string {
  return { handoff: 'hands over to', message: 'to' }[kind] ?? `${kind.replace('.', ' ')} to`;
}

function timesOf(projection: Projection, rows: readonly Row[], view: View): Layout['times'] {
  const points = new Map<number, number>();
  const add = (seq: number | null, at: number | null) => {
    if (seq !== null && at !== null && seq >= view.from && seq <= view.to) points.set(seq, at);
  };
  for (const { from, to, startedAt, endedAt } of projection.turns) {
    add(from, startedAt);
    add(to, endedAt);
  }
  for (const { seq, at } of projection.arrows) add(seq, at);
  for (const { seq, at } of rows) add(seq, at);
  if (view.from <= 1) add(1, projection.began);

  const times: Layout['times'] = [];
  let before: number | null = null;
  let free = 0;
  let labelled = 0;
  for (const [seq, at] of [...points].toSorted(([a], [b]) => a - b)) {
    const x = xOf(seq, view);
    const gap = before !== null && at - before >= GAP_MS ? at - before : null;
    before = at;
    const second = Math.floor(at / 1_000);
    if (second === labelled) continue;
    const isEnd = x > view.width - LABEL_PX;
    const start = isEnd ? x - LABEL_PX : x;
    // The label of a long gap replaces an ordinary label just before it.
    if (start < free && (gap === null || times.at(-1)?.gap !== null)) continue;
    if (start < free) times.pop();
    labelled = second;
    times.push({ x, at, gap, isEnd });
    free = start + LABEL_PX;
  }
  return times;
}
