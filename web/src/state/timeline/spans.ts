import type { TimedPart } from '../../../../src/events/index.ts';
import type { Projection, TaskView, TurnView } from '../../../../src/library/projection/model.ts';
import type { TimeMark } from '../../../../src/library/projection/time-page.ts';
import type { LogTimes, OldTask, OldTurn } from './log-times.ts';
import { lastBefore, type Silences, silencesOf } from './scale.ts';

/** A turn on the axis of time. Times in ms since the epoch. */
export interface TurnSpan {
  id: string;
  agent: string;
  number: number;
  status: TurnView['status'];
  /** Seq of its start. */
  seq: number;
  /** Time at which its oldest input came; null if unknown. */
  queued: number | null;
  start: number;
  end: number;
  said: string;
  /** Code of its failure. */
  error: string | null;
  missed: number;
  parts: readonly Part[];
}

/** A part of a turn: waiting, a model at work, or a tool. */
export interface Part {
  kind: TimedPart | 'tool';
  start: number;
  end: number;
  name: string;
  isFailed: boolean;
}

/** A delegated task in the lane of the agent that gave it, with the turns of its thread. */
export interface ThreadSpan {
  task: Pick<TaskView, 'id' | 'owner' | 'assignee' | 'text' | 'outcome' | 'seq' | 'thread' | 'endedAt'>;
  /** The thread in which the task was given; null for the conversation shown. */
  givenIn: string | null;
  start: number;
  end: number;
  turns: readonly TurnSpan[];
  /** The tasks that were given in its thread. */
  nested: readonly ThreadSpan[];
}

/** What the times of a thread's log reveal. */
export interface ThreadTimes {
  turns: readonly TurnSpan[];
  tasks: readonly OldTask[];
}

/** A period in which an agent waits for a person. */
export interface WaitSpan {
  task: TaskView;
  start: number;
  end: number;
}

/** The events that are drawn as marks, in arrays sorted by seq. */
export interface Marks {
  seq: number[];
  at: number[];
  mark: TimeMark[];
}

export interface LaneSpans {
  /** Null for people, who share the first lane. */
  agent: string | null;
  name: string;
  /** Sorted by start. */
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

interface Present {
  now: number;
  /** Threads by conversation. */
  threads: ReadonlyMap<string, ThreadTimes>;
}

/**
 * Everything that the timeline draws of a conversation. Running turns end at `now`. The projection has the newest turns in
 * full; `times` adds the older ones and the events.
 */
export function spansOf(projection: Projection, times: LogTimes, { now, threads }: Present): Spans {
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

function addTask(lane: LaneSpans | undefined, task: TaskView, { now, threads }: Present): void {
  const span = { task, start: task.at, end: task.endedAt ?? now };
  if (task.kind !== 'delegation') return void (lane?.waits as WaitSpan[] | undefined)?.push(span);
  const inside = insideOf(threads, task.thread, { end: span.end, outer: [] });
  (lane?.threads as ThreadSpan[] | undefined)?.push({ ...span, givenIn: null, ...inside });
}

/** Most levels of threads that are drawn. */
const MAX_DEPTH = 8;

/** The turns of a thread, and the tasks given in it. An open task is drawn as long as the task around it. */
function insideOf(
  threads: ReadonlyMap<string, ThreadTimes>,
  thread: string | null,
  { end, outer }: { end: number; outer: readonly string[] },
): Pick<ThreadSpan, 'turns' | 'nested'> {
  const times = thread === null ? undefined : threads.get(thread);
  if (thread === null || !times || outer.length >= MAX_DEPTH) return { turns: [], nested: [] };
  const around = [...outer, thread];
  const nested = times.tasks
    // Leaves out the task that opened the thread, with which its log begins.
    .filter((task) => !around.includes(task.thread))
    .map((task): ThreadSpan => {
      const until = task.end ?? Math.max(task.start, end);
      const inside = insideOf(threads, task.thread, { end: until, outer: around });
      const { id, owner, seq, thread: own, start } = task;
      const assignee = (inside.turns[0]?.agent ?? null) as TaskView['assignee'];
      const outcome = task.end === null ? null : 'ended';
      return {
        task: {
          id,
          owner: owner as TaskView['owner'],
          assignee,
          text: '',
          outcome,
          seq,
          thread: own as TaskView['thread'],
          endedAt: task.end,
        },
        givenIn: thread,
        start,
        end: until,
        ...inside,
      };
    });
  return { turns: times.turns, nested };
}

const NO_MARKS: Marks = { seq: [], at: [], mark: [] };

/** Leaves out events after the moment shown. */
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

/** What the times of a thread's log reveal about the thread. */
export function threadTimes(times: LogTimes, thread: string, now: number): ThreadTimes {
  const turns = times.turns.map((turn) => olderSpan(turn, thread, now));
  return { turns: turns.toSorted((a, b) => a.start - b.start), tasks: [...times.tasks.values()] };
}

/** A task with all tasks that are nested in it. */
export function* nestedIn(thread: ThreadSpan): Generator<ThreadSpan> {
  yield thread;
  for (const each of thread.nested) yield* nestedIn(each);
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
    for (const { turns: inner } of threads.flatMap((thread) => [...nestedIn(thread)]))
      for (const { start, end } of inner) spans.push([start, end]);
  }
  if (projection.at > 0) spans.push([projection.at, projection.at]);
  spans.sort((a, b) => a[0] - b[0]);
  const events = Math.max(0, projection.seq - times.first + 1);
  const { starts, ends } = merged(spans, events < times.at.length ? times.at.slice(0, events) : times.at);
  const from = starts[0] ?? now;
  return { silences: silencesOf(starts, ends), from, to: ends.reduce((a, b) => Math.max(a, b), from) };
}

/** A longer wait for a turn, such as that of a paused agent, becomes a gap in the axis like any silence, ms. */
const LONG_WAIT_MS = 1_800_000;

/** Sorted spans and moments together. After a clock was set back, a moment counts as late as the latest one before it. */
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
