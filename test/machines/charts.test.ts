import { getNextTransitions } from 'xstate';
import { describe, expect, test } from 'vitest';
import { hashOf } from '../../scripts/layout-chart.ts';
import type { Box, Chart, Point } from '../../src/library/projection/chart.ts';
import { CHARTS } from '../../src/library/projection/charts.ts';
import { agentLifecycle } from '../../src/machines/agent-lifecycle.ts';
import { availability } from '../../src/machines/availability.ts';
import { compaction } from '../../src/machines/compaction.ts';
import { describeChart, describeMachine, legalIn } from '../../src/machines/describe.ts';

/** Of 448 px, without what is around the chart. */
const COLUMN_PX = 398;

const MACHINES = { agent: agentLifecycle, availability, compaction };

describe.each(Object.entries(MACHINES))('the chart of %s', (name, machine) => {
  const chart: Chart = CHARTS[name as keyof typeof CHARTS];
  const described = describeChart(machine);

  test('is that of the machine: else run "npm run charts"', () => {
    expect(chart.hash).toBe(hashOf(described));
  });

  test('has every state and every transition to another one, each with its labels', () => {
    expect(chart.states.map(({ path }) => path)).toEqual(described.states.map(({ path }) => path));
    const ends = ({ from, to, event, guard }: (typeof described.edges)[number]) =>
      `${from} ${event} ${guard} ${to}`;
    expect(chart.edges.map(ends).toSorted()).toEqual(described.edges.map(ends).toSorted());
    expect(chart.anywhere).toEqual(described.anywhere);
  });

  test('has no two boxes that overlap, unless one is in the other', () => {
    const clashes = chart.states.flatMap((a, index) =>
      chart.states
        .slice(index + 1)
        .filter((b) => !isWithin(a.path, b.path) && !isWithin(b.path, a.path) && overlap(a, b))
        .map((b) => `${a.path} and ${b.path}`),
    );
    expect(clashes).toEqual([]);
    for (const state of chart.states) {
      const parent = chart.states.find(({ path }) => path === state.parent);
      const around = parent ?? { x: 0, y: 0, width: chart.width, height: chart.height };
      expect(contains(around, state), state.path).toBe(true);
    }
  });

  test('has no line that crosses a state which it neither leaves nor enters', () => {
    const crossings = chart.edges.flatMap(({ from, to, points }) =>
      chart.states
        .filter(({ path }) => !isWithin(from, path) && !isWithin(to, path))
        .filter((state) => segments(points).some(([a, b]) => crosses(a, b, state)))
        .map(({ path }) => `${from} -> ${to} crosses ${path}`),
    );
    expect(crossings).toEqual([]);
  });

  test('has lines that begin and end at the edge of their states', () => {
    for (const { from, to, points } of chart.edges) {
      for (const [path, point] of [
        [from, points[0]],
        [to, points.at(-1)],
      ] as const) {
        const state = chart.states.find((each) => each.path === path);
        expect(state && point && isOnEdge(point, state), `${from} -> ${to} at ${path}`).toBe(true);
      }
    }
  });

  test('has labels that cover neither each other nor a state', () => {
    const labels = chart.edges.map(({ from, to, event, label }) => ({
      name: `${from} ${event} ${to}`,
      label,
    }));
    const leaves = chart.states.filter(({ path }) => !chart.states.some(({ parent }) => parent === path));
    const clashes = labels.flatMap(({ name: one, label }, index) => [
      ...labels.slice(index + 1).flatMap((other) => (overlap(label, other.label) ? [[one, other.name]] : [])),
      ...leaves.flatMap((state) => (overlap(label, state) ? [[one, state.path]] : [])),
    ]);
    expect(clashes).toEqual([]);
  });
});

test('transitions that cannot be drawn without hiding others are listed: self-transitions, and those from several states to one', () => {
  expect(CHARTS.agent.anywhere).toEqual([
    { event: 'ABORTED', guard: null, target: 'working.committing', in: 'working' },
    { event: 'REFUSED', guard: null, target: 'working.committing', in: 'working' },
  ]);
});

test('the agent fits into the right column of a page without being scaled down', () => {
  expect(CHARTS.agent.width).toBeLessThanOrEqual(COLUMN_PX);
});

test('the legal events of a state are those that XState would take', () => {
  for (const { path } of describeMachine(agentLifecycle).states) {
    const [top = '', below] = path.split('.');
    const value = below === undefined ? top : { [top]: below };
    const snapshot = agentLifecycle.resolveState({ value } as never);
    const known = getNextTransitions(snapshot).map(({ eventType, guard, target }) => ({
      event: eventType,
      guard: typeof guard === 'string' ? guard : null,
      target: target?.map((state) => state.path.join('.')).join(', ') ?? path,
    }));
    expect(legalIn(agentLifecycle, path), path).toEqual(known);
  }
  expect(legalIn(agentLifecycle, 'working').map(({ event }) => event)).toEqual(['ABORTED', 'REFUSED']);
  expect(legalIn(agentLifecycle, 'newer')).toEqual([]);
});

function isWithin(path: string, box: string): boolean {
  return path === box || path.startsWith(`${box}.`);
}

function overlap(a: Box, b: Box): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

function contains(outer: Box, inner: Box): boolean {
  const [right, bottom] = [outer.x + outer.width, outer.y + outer.height];
  return (
    inner.x >= outer.x &&
    inner.y >= outer.y &&
    inner.x + inner.width <= right &&
    inner.y + inner.height <= bottom
  );
}

function segments(points: readonly Point[]): [Point, Point][] {
  return points.slice(1).map((to, index) => [points[index] ?? to, to]);
}

/** Lines are drawn straight down or across. */
function crosses(a: Point, b: Point, box: Box): boolean {
  const line = { x: Math.min(a.x, b.x), y: Math.min(a.y, b.y), width: 0.1, height: 0.1 };
  return overlap(
    { ...line, width: Math.max(0.1, Math.abs(a.x - b.x)), height: Math.max(0.1, Math.abs(a.y - b.y)) },
    box,
  );
}

function isOnEdge({ x, y }: Point, box: Box): boolean {
  const near = (a: number, b: number) => Math.abs(a - b) <= 0.2;
  return x >= box.x - 0.2 && x <= box.x + box.width + 0.2 && (near(y, box.y) || near(y, box.y + box.height));
}
