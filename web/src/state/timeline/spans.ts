import type { TimedPart } from '../../../../src/events/index.ts';
import type { Projection, TaskView, TurnView } from '../../../../src/projection/model.ts';
import type { TimeMark } from '../../../../src/projection/time-page.ts';
import type { LogTimes, OldTurn } from './log-times.ts';
import { lastBefore, type Silences, silencesOf } from './scale.ts';

/** A turn on the axis of time. Times in ms since the epoch. */
export interface TurnSpan {
  id: string;
  agent: string;
  number: number;
  status: TurnView['status'];
  /** Seq of its start. */
  seq: number;
  /** When its oldest input came; null if unknown. */
  queued: number | null;
  start: number;
  end: number;
  said: string;
  /** Code of its failure. */
  error: string | null;
  missed: number;
  parts: readonly Part[];
}

/** A piece of a turn: waiting, a model at work, or a tool. */
export interface Part {
  kind: TimedPart | 'tool';
  start: number;
  end: number;
  name: string;
  isFailed: boolean;
}

/** A delegated task in the lane of the agent that asked, with the turns of its thread. */
export interface ThreadSpan {
  task: TaskView;
  start: number;
  end: number;
  turns: readonly TurnSpan[];
}

/** A time in which an agent waits for a person. */
export interface WaitSpan {
  task: TaskView;
  start: number;
  end: number;
}

/** The events that are drawn as marks, in columns, by seq. */
export interface Marks {
  seq: number[];
  at: number[];
  mark: TimeMark[];
}

export interface LaneSpans {
  /** Null for people, who share the first lane. */
  agent: string | null;
  name: string;
  /** By start. */
  turns: readonly TurnSpan[];
  threads: readonly ThreadSpan[];
  waits: readonly WaitSpan[];
  marks: Marks;
}

export interface Spans {
  lanes: readonly LaneSpans[];
  silences: Silences;
  /** The first and the last moment. */
  from: number;
  to: number;
}

const NO_TURNS: readonly TurnSpan[] = [];

/**
 * Everything that the timeline draws of a conversation. `now` is where running turns end. The projection has the newest
 * turns in full; `times` adds the older ones and the events.
 */
export function spansOf(
  projection: Projection,
  times: LogTimes,
  { now, threads }: { now: number; threads: ReadonlyMap<string, readonly TurnSpan[]> },
): Spans {
  const lanes = new Map<string | null, { turns: TurnSpan[]; lane: LaneSpans }>();
  const add = (agent: string | null, name: string) => {
    const turns: TurnSpan[] = [];
    const marks = marksUpTo(times.marks.get(agent ?? ''), projection.seq);
    const lane: LaneSpans = { agent, name, turns, threads: [], waits: [], marks };
    lanes.set(agent, { turns, lane });
  };
  add(null, 'People');
  for (const { id, name } of Object.values(projection.agents)) add(id, name);

  const known = new Set(projection.turns.map(({ from }) => from));
  const { seq, conversation } = projection;
  for (const turn of times.turns)
    if (!known.has(turn.seq) && turn.seq <= seq)
      lanes.get(turn.agent)?.turns.push(olderSpan(turn, conversation, now));
  for (const turn of projection.turns) lanes.get(turn.agent)?.turns.push(spanOf(turn, now));
  for (const { turns } of lanes.values()) turns.sort((a, b) => a.start - b.start);

  for (const task of projection.tasks) addTask(lanes.get(task.owner)?.lane, task, { now, threads });
  const all = [...lanes.values()].map(({ lane }) => lane);
  return { lanes: all, ...extentOf(projection, times, all, now) };
}

function addTask(
  lane: LaneSpans | undefined,
  task: TaskView,
  { now, threads }: { now: number; threads: ReadonlyMap<string, readonly TurnSpan[]> },
): void {
  const span = { task, start: task.at, end: task.endedAt ?? now };
  if (task.kind !== 'delegation') return void (lane?.waits as WaitSpan[] | undefined)?.push(span);
  const turns = (task.thread && threads.get(task.thread)) || NO_TURNS;
  (lane?.threads as ThreadSpan[] | undefined)?.push({ ...span, turns });
}

const NO_MARKS: Marks = { seq: [], at: [], mark: [] };

/** Without the events after the moment shown. */
function marksUpTo(marks: Marks | undefined, upTo: number): Marks {
  if (!marks) return NO_MARKS;
  const { seq, at, mark } = marks;
  if ((seq.at(-1) ?? 0) <= upTo) return marks;
  const count = lastBefore(seq, (each) => each <= upTo) + 1;
  return { seq: seq.slice(0, count), at: at.slice(0, count), mark: mark.slice(0, count) };
}

export function spanOf(turn: TurnView, now: number): TurnSpan {
  const { id, agent, number, status, from, queuedAt, startedAt, endedAt, said, missed, error } = turn;
  return {
    id,
    agent,
    number,
    status,
    seq: from,
    queued: queuedAt,
    start: startedAt,
    end: Math.max(startedAt, endedAt ?? now),
    said,
    error: error?.code ?? null,
    missed: missed?.count ?? 0,
    parts: partsOf(turn),
  };
}

function partsOf({ times, calls }: TurnView): Part[] {
  const parts = times?.parts.map(([kind, start, ms]): Part => {
    const from = times.from + start;
    return { kind, start: from, end: from + ms, name: '', isFailed: false };
  });
  const tools = calls.flatMap(({ name, ran, outcome }): Part[] =>
    ran
      ? [
          {
            kind: 'tool',
            start: ran.at,
            end: ran.at + ran.ms,
            name,
            isFailed: outcome === 'failed' || outcome === 'lost',
          },
        ]
      : [],
  );
  return [...(parts ?? []), ...tools];
}

function olderSpan(turn: OldTurn, conversation: string, now: number): TurnSpan {
  const { agent, number, seq, start, end, status } = turn;
  return {
    id: `${conversation}:${agent}:${number}`,
    agent,
    number,
    status,
    seq,
    queued: null,
    start,
    end: Math.max(start, end ?? now),
    said: '',
    error: null,
    missed: 0,
    parts: turn.parts,
  };
}

/** The turns of a thread, from the times of its log. */
export function threadTurns(times: LogTimes, thread: string, now: number): TurnSpan[] {
  return times.turns.map((turn) => olderSpan(turn, thread, now)).toSorted((a, b) => a.start - b.start);
}

function extentOf(
  projection: Projection,
  times: LogTimes,
  lanes: readonly LaneSpans[],
  now: number,
): Pick<Spans, 'silences' | 'from' | 'to'> {
  const spans: [number, number][] = [];
  for (const { at } of projection.arrows) spans.push([at, at]);
  for (const { at, endedAt } of projection.tasks) spans.push([at, at], [endedAt ?? at, endedAt ?? at]);
  for (const { turns, threads } of lanes) {
    for (const { queued, start, end } of turns) {
      const waited = queued === null ? 0 : start - queued;
      spans.push([waited > 0 && waited <= LONG_WAIT_MS ? start - waited : start, end]);
    }
    for (const thread of threads) for (const { start, end } of thread.turns) spans.push([start, end]);
  }
  if (projection.at > 0) spans.push([projection.at, projection.at]);
  spans.sort((a, b) => a[0] - b[0]);
  const events = Math.max(0, projection.seq - times.first + 1);
  const { starts, ends } = merged(spans, events < times.at.length ? times.at.slice(0, events) : times.at);
  const from = starts[0] ?? now;
  return { silences: silencesOf(starts, ends), from, to: ends.reduce((a, b) => Math.max(a, b), from) };
}

/** A turn that waited longer, such as that of a paused agent, leaves a gap in the axis like any silence. */
const LONG_WAIT_MS = 1_800_000;

/** Sorted spans and moments together. Moments are sorted but for clocks that were set back: those count as the latest. */
function merged(
  spans: readonly (readonly [number, number])[],
  moments: readonly number[],
): { starts: Float64Array; ends: Float64Array } {
  const starts = new Float64Array(spans.length + moments.length);
  const ends = new Float64Array(starts.length);
  let next = 0;
  let last = Number.NEGATIVE_INFINITY;
  let count = 0;
  for (const moment of moments) {
    last = Math.max(last, moment);
    for (let span = spans[next]; span && span[0] <= last; span = spans[++next]) {
      starts[count] = span[0];
      ends[count++] = span[1];
    }
    starts[count] = ends[count++] = last;
  }
  for (; next < spans.length; next++) {
    starts[count] = spans[next]?.[0] ?? 0;
    ends[count++] = spans[next]?.[1] ?? 0;
  }
  return { starts, ends };
}
