import { expect, test } from 'vitest';
import type { AgentId, TurnId } from '../../src/events/index.ts';
import type { TurnView } from '../../src/projection/model.ts';
import { newProjection } from '../../src/projection/projection.ts';
import { layoutTimeline, xOf, type View } from '../../web/src/state/timeline-layout.ts';

const NO_TOKENS = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const VIEW: View = { from: 1, to: 100, width: 1_000, lanes: [0, 10] };

function turnOf(agent: string, from: number, to: number | null): TurnView {
  return {
    id: `c:${agent}:1` as TurnId,
    agent: agent as AgentId,
    number: 1,
    status: to === null ? 'running' : 'done',
    from,
    to,
    queuedAt: null,
    startedAt: from * 1_000,
    endedAt: to === null ? null : to * 1_000,
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
  };
}

function projectionWith(turns: TurnView[]) {
  const agents = Object.fromEntries(['a', 'b'].map((id) => [id, { id, name: id }]));
  return { ...newProjection('c'), seq: 100, agents, turns } as unknown as ReturnType<typeof newProjection>;
}

test('a turn is a bar in the lane of its agent, from its first event to its last', () => {
  const { bars } = layoutTimeline(projectionWith([turnOf('b', 11, 20)]), [], VIEW);
  expect(bars).toMatchObject([{ lane: 2, x: 100, width: 99 }]);
});

test('a running turn reaches to the last event', () => {
  const { bars } = layoutTimeline(projectionWith([turnOf('a', 51, null)]), [], VIEW);
  expect(bars).toMatchObject([{ x: 500, width: 499 }]);
});

test('turns out of view are not laid out', () => {
  const turns = [turnOf('a', 1, 10), turnOf('b', 60, 70)];
  const projection = projectionWith(turns);
  expect(layoutTimeline(projection, [], { ...VIEW, from: 50 }).bars).toHaveLength(1);
  expect(layoutTimeline(projection, [], { ...VIEW, lanes: [0, 2] }).bars).toHaveLength(1);
});

test('an arrow goes from the lane of the speaker to the lanes of the addressees', () => {
  const projection = projectionWith([]);
  projection.arrows = [
    { seq: 5, at: 0, kind: 'message', from: 'Ana', isAgent: false, to: ['a' as AgentId, 'b' as AgentId] },
    { seq: 6, at: 0, kind: 'handoff', from: 'a', isAgent: true, to: ['b' as AgentId] },
  ];
  const { arrows } = layoutTimeline(projection, [], VIEW);
  expect(arrows.map(({ from, to, kind }) => [from, to, kind])).toEqual([
    [0, 1, 'message'],
    [0, 2, 'message'],
    [1, 2, 'handoff'],
  ]);
});

test('quiet hours take no space and are labelled', () => {
  const projection = projectionWith([
    turnOf('a', 1, 20),
    { ...turnOf('b', 21, 40), startedAt: 8 * 3_600_000 },
  ]);
  const { times } = layoutTimeline(projection, [], VIEW);
  const late = times.find(({ gap }) => gap !== null);
  expect(late?.x).toBe(xOf(21, VIEW));
  expect(late?.gap).toBe(8 * 3_600_000 - 20_000);
});
