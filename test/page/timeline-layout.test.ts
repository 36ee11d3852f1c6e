import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AgentId, ConversationId, TurnId } from '../../src/events/index.ts';
import type { Projection, TaskView, TurnView } from '../../src/library/projection/model.ts';
import { emptyTimes, MARK, type TimePage } from '../../src/library/projection/time-page.ts';
import { newProjection } from '../../src/library/projection/projection.ts';
import { labelIn, type Layout, layoutTimeline, MARK_ROOM_PX } from '../../web/src/state/timeline/layout.ts';
import { addPage, newestPages, noTimes } from '../../web/src/state/timeline/log-times.ts';
import { packThreads, placeLanes } from '../../web/src/state/timeline/rows.ts';
import { createScale, type Range, zoomToFit } from '../../web/src/state/timeline/scale.ts';
import {
  nestedIn,
  spansOf,
  type ThreadSpan,
  type ThreadTimes,
  threadTimes,
} from '../../web/src/state/timeline/spans.ts';
import { cpuMsOf } from '../support/cpu-ms.ts';
import { targetAt } from '../../web/src/state/timeline/target-at.ts';

const NO_TOKENS = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const HOUR = 3_600_000;
/** Noon, local time. */
const NOON = new Date(2026, 10, 3, 12, 0).getTime();
const WIDTH = 1_000;

function turnOf(agent: string, start: number, end: number | null, more: Partial<TurnView> = {}): TurnView {
  return {
    id: `c:${agent}:${start}` as TurnId,
    agent: agent as AgentId,
    number: 1,
    status: end === null ? 'running' : 'done',
    from: start,
    to: end,
    queuedAt: null,
    startedAt: NOON + start,
    endedAt: end === null ? null : NOON + end,
    upTo: 0,
    inputs: [],
    trigger: null,
    missed: null,
    steps: 1,
    calls: [],
    callCount: 0,
    tokens: NO_TOKENS,
    retries: 0,
    error: null,
    handoff: null,
    retried: null,
    said: '',
    times: null,
    ...more,
  };
}

/** A task of a for b, that took eight seconds. */
function taskOf(id: string, thread: string): TaskView {
  return {
    id,
    kind: 'delegation',
    owner: 'a',
    seq: 5,
    at: NOON + 1_000,
    text: 'count',
    assignee: 'b',
    thread: thread as ConversationId,
    outcome: 'done',
    endedAt: NOON + 9_000,
  } as TaskView;
}

function projectionWith(turns: TurnView[], more: Partial<Projection> = {}): Projection {
  const agents = Object.fromEntries(['a', 'b'].map((id) => [id, { id, name: id }])) as never;
  return { ...newProjection('c'), seq: 1_000_000, agents, turns, ...more };
}

interface Shown {
  projection: Projection;
  range?: Range;
  pages?: TimePage[];
  expanded?: string[];
  threads?: Map<string, ThreadTimes>;
  now?: number;
}

function shown({
  projection,
  range,
  pages = [],
  expanded = [],
  threads = new Map(),
  now = NOON,
}: Shown): Layout {
  const times = noTimes();
  for (const page of pages) addPage(times, page);
  const spans = spansOf(projection, times, { now, threads });
  const stretch = range ?? [spans.from, spans.to];
  const scale = createScale(spans.from, spans.silences, zoomToFit(spans.silences, stretch, WIDTH));
  const view = { scale, left: scale.xOf(stretch[0]), width: WIDTH, top: 0, height: 400 };
  return layoutTimeline(placeLanes(spans.lanes, new Set(expanded)), projection.arrows, view);
}

const turnBoxes = ({ boxes }: Layout) => boxes.filter(({ target }) => target?.kind === 'turn');

test('a turn is as wide as it was long, whatever happened in it', () => {
  const layout = shown({ projection: projectionWith([turnOf('a', 0, 8_000), turnOf('b', 8_000, 10_000)]) });
  const widths = turnBoxes(layout).map(({ x, width }) => [Math.round(x), Math.round(width)]);
  expect(widths).toEqual([
    [0, 800],
    [800, 200],
  ]);
});

test('a running turn reaches to the present', () => {
  const layout = shown({ projection: projectionWith([turnOf('a', 0, null)]), now: NOON + 5_000 });
  expect(turnBoxes(layout)).toMatchObject([{ tone: 'running', x: 0, width: WIDTH }]);
});

test('a night takes little room, is marked with its length, and the next day is named', () => {
  const night = 14 * HOUR;
  const projection = projectionWith([turnOf('a', 0, HOUR), turnOf('a', HOUR + night, 2 * HOUR + night)]);
  const { gaps, ticks } = shown({ projection });
  expect(gaps).toHaveLength(1);
  expect(gaps[0]?.width).toBeLessThan(80);
  expect((gaps[0]?.to ?? 0) - (gaps[0]?.from ?? 0)).toBe(night);
  expect(ticks.filter(({ day }) => day !== null).map(({ day }) => day?.replace(',', ''))).toEqual([
    'Tue 3 Nov',
    'Wed 4 Nov',
  ]);
});

test('two hundred nights still leave most of the width to the days', () => {
  const turns = Array.from({ length: 200 }, (_, n) => turnOf('a', n * 24 * HOUR, n * 24 * HOUR + 8 * HOUR));
  const { gaps } = shown({ projection: projectionWith(turns) });
  expect(gaps.reduce((sum, { width }) => sum + width, 0)).toBeLessThan(WIDTH * 0.65);
});

test('at ten milliseconds across the width the axis has milliseconds', () => {
  const projection = projectionWith([turnOf('a', 0, 8_000)]);
  const { ticks } = shown({ projection, range: [NOON + 100, NOON + 110] });
  expect(ticks.length).toBeGreaterThan(5);
  expect(ticks[0]?.label).toMatch(/12:00:00[.,]1/);
});

test('no label of the axis is cut by a gap or by the edge', () => {
  const turns = Array.from({ length: 9 }, (_, n) => turnOf('a', n * 20 * HOUR, n * 20 * HOUR + 2 * HOUR));
  const projection = projectionWith(turns);
  for (let step = 0; step < 40; step += 1) {
    const from = NOON + step * 0.13 * HOUR;
    const { gaps, ticks } = shown({ projection, range: [from, from + 90 * HOUR] });
    const labels = ticks.filter(({ label }) => label !== '');
    expect(labels.length).toBeGreaterThan(2);
    for (const { x, label, day } of labels) {
      const end = x + Math.max(label.length, day?.length ?? 0) * 6;
      expect(end).toBeLessThanOrEqual(WIDTH);
      expect(gaps.filter((gap) => gap.x < end && gap.x + gap.width > x + 1)).toEqual([]);
    }
  }
});

test('a label that has no room loses words, never digits', () => {
  const inChars = (label: string) => [15, 9, 6, 3, 2].map((most) => labelIn(label, most));
  expect(inChars('253 Hello there')).toEqual(['253 Hello there', '253 Hell…', '253', '253', '']);
  expect(inChars('read_report')).toEqual(['read_report', 'read_rep…', 'read_…', '', '']);
});

test('a turn shows how long it waited, its parts, and its tools below each other', () => {
  const turn = turnOf('a', 1_000, 9_000, {
    queuedAt: NOON,
    times: {
      from: NOON + 1_000,
      parts: [
        ['build', 0, 500],
        ['first_token', 500, 1_500],
        ['stream', 2_000, 1_000],
      ],
    },
    calls: ['look', 'read'].map((name, n) => ({
      call: name,
      name,
      outcome: 'done',
      seq: n,
      ran: { at: NOON + 4_000, ms: 1_000 + n },
    })),
  });
  const { boxes } = shown({ projection: projectionWith([turn]), expanded: ['a'] });
  expect(boxes.find(({ tone }) => tone === 'queued')?.width).toBeCloseTo(WIDTH / 9, 0);
  const rows = boxes.filter(({ height, target }) => target?.kind === 'part' && height > 10);
  expect(rows.map(({ label }) => label)).toEqual(['prompt', 'first word', 'stream', 'look', 'read']);
  const [look, read] = rows.slice(-2);
  expect(read?.y).toBeGreaterThan(look?.y ?? 0);
});

test('a delegated task spans its time in the lane of its owner, with the turns of its thread inside', () => {
  const task = taskOf('t', 'c/t');
  const times = noTimes();
  addPage(
    times,
    pageOf(
      [
        [3, MARK.started],
        [2_000, MARK.done],
      ],
      NOON + 2_000,
    ),
  );
  const threads = new Map([['c/t', threadTimes(times, 'c/t', NOON)]]);
  const projection = projectionWith([turnOf('a', 0, 10_000)], { tasks: [task] });
  const layout = shown({ projection, threads });
  const thread = layout.boxes.find(({ target }) => target?.kind === 'thread');
  expect([thread?.x, thread?.width].map((px) => Math.round(px ?? 0))).toEqual([100, 800]);
  const inner = layout.boxes.find(({ target }) => target?.kind === 'turn' && target.thread === 'c/t');
  expect(inner?.x).toBeGreaterThan(thread?.x ?? 0);
  expect((inner?.x ?? 0) + (inner?.width ?? 0)).toBeLessThan(900);
  expect(targetAt(layout, (inner?.x ?? 0) + 5, (inner?.y ?? 0) + 5)).toMatchObject({ thread: 'c/t' });
});

test('a task that was given in a thread is nested in it, with the turns of its own thread', () => {
  const log = (thread: string, given: TimePage['threads'], ended: TimePage['ended'], agent: string) => {
    const times = noTimes();
    const events = [1_000, 0, 1_000, 1_000, 1_000, 1_000].map(
      (ms, index): [number, TimePage['what'][number]] => [
        ms,
        index === 1 ? MARK.started : index === 5 ? MARK.done : MARK.other,
      ],
    );
    addPage(times, { ...pageOf(events, NOON + 2_000, agent), threads: given, ended });
    return [thread, threadTimes(times, thread, NOON)] as const;
  };
  const threads = new Map([
    // A thread begins with the task that has opened it.
    log(
      't1',
      [
        { seq: 1, task: 'c1', thread: 't1' },
        { seq: 3, task: 'c2', thread: 't2' },
      ],
      [{ seq: 5, task: 'c2' }],
      'b',
    ),
    log('t2', [{ seq: 4, task: 'c3', thread: 't3' }], [], 'd'),
    log('t3', [{ seq: 2, task: 'c4', thread: 't1' }], [], 'e'),
  ]);
  const task = taskOf('c1', 't1');
  const projection = projectionWith([turnOf('a', 0, 10_000)], { tasks: [task] });
  const { boxes } = shown({ projection, threads });
  const frames = boxes.flatMap(({ target, y }) => (target?.kind === 'thread' ? [{ ...target.span, y }] : []));
  expect(frames).toMatchObject([
    { task: { thread: 't1' }, givenIn: null },
    {
      task: { thread: 't2', owner: 'b', assignee: 'd', outcome: 'ended' },
      givenIn: 't1',
      start: NOON + 3_000,
      end: NOON + 5_000,
    },
    // Nobody has said that it ended, and t1 is not drawn in itself.
    {
      task: { thread: 't3', owner: 'd', assignee: 'e', outcome: null },
      givenIn: 't2',
      end: NOON + 5_000,
      nested: [],
    },
  ]);
  const ys = frames.map(({ y }) => y);
  expect(ys).toEqual(ys.toSorted((a, b) => a - b));
  expect(new Set(ys).size).toBe(3);
  const inner = boxes.flatMap(({ target }) =>
    target?.kind === 'turn' && target.thread ? [target.thread] : [],
  );
  expect(inner).toEqual(['t1', 't2', 't3']);
});

test('rows of threads: nothing overlaps, and what is nested lies right below', () => {
  const ofDepth = (depth: number): fc.Arbitrary<ThreadSpan> =>
    fc
      .record({
        start: fc.nat(50),
        ms: fc.nat(30),
        nested: depth === 0 ? fc.constant([]) : fc.array(ofDepth(depth - 1), { maxLength: 3 }),
      })
      .map(({ start, ms, nested }) => ({ start, end: start + ms, nested }) as unknown as ThreadSpan);
  fc.assert(
    fc.property(fc.array(ofDepth(2), { maxLength: 8 }), (spans) => {
      const { rows, threads } = packThreads(spans);
      const rowOf = new Map(threads.map(({ span, row }) => [span, row]));
      const all = spans.flatMap((span) => [...nestedIn(span)]);
      expect(rowOf.size).toBe(all.length);
      expect(Math.max(-1, ...rowOf.values()) + 1).toBe(rows);
      for (const parent of all)
        for (const child of parent.nested)
          expect(rowOf.get(child)).toBeGreaterThan(rowOf.get(parent) ?? Infinity);
      for (const inRow of Map.groupBy(threads, ({ row }) => row).values()) {
        const sorted = inRow.map(({ span }) => span).toSorted((a, b) => a.start - b.start || a.end - b.end);
        for (const [index, { end }] of sorted.entries())
          expect(end).toBeLessThanOrEqual(sorted[index + 1]?.start ?? Infinity);
      }
    }),
    { seed: 22 },
  );
});

/** A page of events of one agent, each after so many ms. */
function pageOf(events: [number, TimePage['what'][number]][], at: number, agent = 'a'): TimePage {
  return {
    first: 1,
    at,
    ms: events.map(([ms], index) => (index === 0 ? 0 : ms)),
    who: events.map(() => 0),
    agents: [agent],
    what: events.map(([, mark]) => mark),
    numbers: events.filter(([, mark]) => mark === MARK.started).map((_, index) => index + 1),
    threads: [],
    ended: [],
    times: [],
    tools: [],
  };
}

test('a hundred thousand events are drawn as columns, in time for the next frame', async () => {
  const events = Array.from({ length: 100_000 }, (_, n): [number, TimePage['what'][number]] => {
    if (n % 8 === 0) return [4_000, MARK.started];
    if (n % 8 === 7) return [900, n % 800 === 7 ? MARK.failed : MARK.done];
    return [200, n % 8 === 1 ? MARK.talk : MARK.other];
  });
  const times = noTimes();
  addPage(times, pageOf(events, NOON));
  const spans = spansOf(projectionWith([]), times, { now: NOON, threads: new Map() });
  const range: Range = [spans.from, spans.to];
  const scale = createScale(spans.from, spans.silences, zoomToFit(spans.silences, range, WIDTH));
  const lanes = placeLanes(spans.lanes, new Set());
  const view = { scale, left: 0, width: WIDTH, top: 0, height: 400 };
  let layout = layoutTimeline(placeLanes([], new Set()), [], view);
  const cpuMs = await cpuMsOf(() => void (layout = layoutTimeline(lanes, [], view)));
  expect(layout.boxes.length).toBeLessThan(500);
  expect(layout.marks.length).toBeLessThan(200);
  const counted = layout.boxes.reduce(
    (sum, { target }) => sum + (target?.kind === 'many' ? target.count : 1),
    0,
  );
  expect(counted).toBe(12_500);
  expect(layout.boxes.some(({ isFailed }) => isFailed)).toBe(true);
  // A few ms if only what is visible is drawn, seconds if every pair is compared.
  expect(cpuMs).toBeLessThan(2_000);
});

test('marks are those that a walk over all events finds: none too near, and no problem without one', () => {
  const event = fc.tuple(fc.nat(4_000), fc.constantFrom(MARK.talk, MARK.talk, MARK.problem, MARK.other));
  fc.assert(
    fc.property(fc.array(event, { minLength: 1, maxLength: 300 }), (events) => {
      const page = pageOf(events, NOON);
      const times = noTimes();
      addPage(times, page);
      const { silences, from, to } = spansOf(projectionWith([]), times, { now: NOON, threads: new Map() });
      const scale = createScale(from, silences, zoomToFit(silences, [from, to], WIDTH));
      let time = page.at;
      const walked: { x: number; kind: string }[] = [];
      for (const [index, [, mark]] of events.entries()) {
        time += page.ms[index] ?? 0;
        if (mark === MARK.other) continue;
        const [x, before] = [scale.xOf(time), walked.at(-1)];
        const kind = mark === MARK.problem ? 'problem' : 'talk';
        if (!before || x >= before.x + MARK_ROOM_PX) walked.push({ x, kind });
        else if (kind === 'problem') before.kind = kind;
      }
      const { marks } = shown({ projection: projectionWith([]), pages: [page] });
      expect(marks.map(({ kind }) => kind)).toEqual(walked.map(({ kind }) => kind));
      for (const [index, { x }] of marks.entries()) expect(x).toBeCloseTo(walked[index]?.x ?? 0, 3);
    }),
  );
});

test('of the pages of times the newest are kept, as few as hold the events that are wanted', () => {
  const pages = [20_000, 5_000, 5_000, 1].map((events) => ({
    ...emptyTimes(),
    ms: Array<number>(events).fill(1),
  }));
  expect(newestPages(pages, 10_000).map(({ ms }) => ms.length)).toEqual([5_000, 5_000, 1]);
  expect(newestPages(pages, 10_002)).toEqual(pages);
  expect(newestPages(pages, 100_000)).toEqual(pages);
  expect(newestPages([], 10)).toEqual([]);
});

test('a log without turns, such as an imported one, shows where its events are', () => {
  const events = Array.from({ length: 5_000 }, (): [number, TimePage['what'][number]] => [1_000, MARK.talk]);
  const { boxes } = shown({ projection: projectionWith([]), pages: [pageOf(events, NOON)] });
  expect(boxes.filter(({ tone }) => tone === 'events').length).toBeGreaterThan(100);
});

test('an arrow goes from the lane of the speaker to the lanes of the addressees, at its time', () => {
  const arrows: Projection['arrows'] = [
    { seq: 5, at: NOON + 5_000, kind: 'message', from: 'Ana', isAgent: false, to: ['a', 'b'] as AgentId[] },
    { seq: 6, at: NOON + 7_500, kind: 'handoff', from: 'a', isAgent: true, to: ['b'] as AgentId[] },
  ];
  const layout = shown({ projection: projectionWith([turnOf('a', 0, 10_000)], { arrows }) });
  expect(layout.arrows.map(({ kind, x }) => [kind, Math.round(x)])).toEqual([
    ['message', 500],
    ['message', 500],
    ['handoff', 750],
  ]);
});
