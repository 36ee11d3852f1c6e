import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AgentId } from '../../src/events/index.ts';
import type { Link } from '../../src/library/projection/model.ts';
import type { TreeNode } from '../../src/library/projection/tree.ts';
import {
  type GraphNode,
  graphOf,
  MAX_NODES,
  OTHERS,
  type Passing,
  passOn,
  sumOf,
  type Talked,
} from '../../web/src/state/graph.ts';
import { newProjection } from '../../src/library/projection/projection.ts';
import { treeAt } from '../../web/src/state/tree-at.ts';
import { layoutGraph, lineBetween, thicknessOf } from '../../web/src/state/graph-layout.ts';

function linkOf(from: string, to: string, more: Partial<Link> = {}): Link {
  return {
    from,
    by: from === 'Ana' ? 'user' : 'agent',
    to: to as AgentId,
    messages: 1,
    tasks: 0,
    handoffs: 0,
    seq: 1,
    ...more,
  };
}

function talked(
  links: readonly Link[],
  agents: readonly string[] = [],
  inThreads: readonly TreeNode[] = [],
): Talked {
  return {
    inThreads,
    links: [...links],
    agents: Object.fromEntries(agents.map((id) => [id, { id, name: id.toUpperCase() }])) as never,
  };
}

const manyLinks = fc.uniqueArray(
  fc.record({
    from: fc.nat(60),
    to: fc.nat(60),
    messages: fc.integer({ min: 1, max: 99 }),
    tasks: fc.nat(3),
  }),
  { maxLength: 200, selector: ({ from, to }) => `${from} ${to}` },
);

test('the lines of a graph add up to the links of the log, whoever has no place of their own', () => {
  fc.assert(
    fc.property(manyLinks, (all) => {
      const links = all.map(({ from, to, ...counts }) =>
        linkOf(from === 0 ? 'Ana' : `a${from}`, `a${to}`, counts),
      );
      const { nodes, edges } = graphOf(talked(links), talked(links));
      expect(nodes.filter(({ id }) => id !== OTHERS).length).toBeLessThanOrEqual(MAX_NODES);
      const add = (sum: number, each: number) => sum + each;
      expect(edges.map(sumOf).reduce(add, 0)).toBe(links.map(sumOf).reduce(add, 0));
      expect(edges.map(({ tasks }) => tasks).reduce(add, 0)).toBe(
        links.map(({ tasks }) => tasks).reduce(add, 0),
      );
      const known = new Set(nodes.map(({ id }) => id));
      expect(edges.every(({ from, to }) => known.has(from) && known.has(to))).toBe(true);
      expect(new Set(edges.map(({ from, to }) => `${from}>${to}`)).size).toBe(edges.length);
    }),
  );
});

test('those with the most messages keep a place of their own, and the rest is one node', () => {
  const quiet = Array.from({ length: MAX_NODES + 6 }, (_, index) => linkOf('Ana', `a${index}`));
  const latest = talked([...quiet, linkOf('a35', 'a34', { messages: 9 })]);
  const { nodes } = graphOf(latest, latest);
  expect(nodes).toHaveLength(MAX_NODES + 1);
  expect(nodes.map(({ id }) => id)).toEqual(expect.arrayContaining(['user Ana', 'agent a34', 'agent a35']));
  expect(nodes.at(-1)).toEqual({ id: OTHERS, kind: 'others', name: '7 others' });
});

test('a past moment has the places of the present, and the counts and tasks of then', () => {
  const task = (from: string, to: string, thread: string) => ({ from, to, thread }) as TreeNode;
  const tasks = [task('bob', 'cyd', 't1'), task('bob', 'cyd', 't2'), task('cyd', 'bob', 't3')];
  const latest = talked(
    [linkOf('Ana', 'ada', { messages: 4, seq: 9 }), linkOf('ada', 'bob', { tasks: 1 })],
    ['ada', 'bob', 'cyd'],
    tasks,
  );
  const then = talked([linkOf('Ana', 'ada', { messages: 2, seq: 3 })], ['ada'], tasks.slice(0, 2));
  const shown = graphOf(latest, then);
  expect(shown.nodes.map(({ name }) => name)).toEqual(['ADA', 'BOB', 'CYD', 'Ana']);
  expect(
    shown.edges.map(({ from, to, messages, tasks: of, thread }) => [from, to, messages, of, thread]),
  ).toEqual([
    ['user Ana', 'agent ada', 2, 0, null],
    ['agent bob', 'agent cyd', 0, 2, 't2'],
  ]);
});

test('a past moment has the turns and tasks that had begun by then, without their ends; the present has all', () => {
  const shown = { ...newProjection('c'), at: 500, seq: 7 };
  const own = { conversation: shown.conversation };
  const node = (id: string, at: number, more: Partial<TreeNode> = {}) =>
    ({
      id,
      at,
      conversation: 't',
      parent: null,
      state: 'done',
      endedAt: 450,
      said: 'so',
      ...more,
    }) as TreeNode;
  const nodes = [
    node('own', 100, { ...own, seq: 7 }),
    node('later-own', 100, { ...own, seq: 8 }),
    node('of-later', 400, { parent: 'later-own' }),
    node('below', 500, { parent: 'above', endedAt: 501 }),
    node('above', 500),
    node('later', 501),
    node('orphan', 499, { parent: 'gone' }),
    node('a', 499, { parent: 'b' }),
    node('b', 499, { parent: 'a' }),
  ];
  const tree = { ...own, seq: 9, nodes, left: { threads: 0, turns: 0, tasks: 0 } };
  const found = treeAt(tree, shown, { isLive: false });
  expect(found.map(({ id, state, said }) => `${id} ${state} ${said}`)).toEqual([
    'own done so',
    'below running ',
    'above done so',
    'orphan done so',
  ]);
  expect(treeAt(tree, shown, { isLive: true })).toEqual(nodes);
});

test('a message that has just passed lights its line; a jump and a step back light none', () => {
  const now = talked([linkOf('Ana', 'ada', { seq: 9 }), linkOf('ada', 'bob', { seq: 7 })]);
  const { edges } = graphOf(now, now);
  const at = (seq: number, before: Passing = { seq: 8, edges: new Set() }) => passOn(before, edges, seq);
  expect([...at(9).edges]).toEqual(['user Ana > agent ada']);
  expect([...at(10, at(9)).edges]).toEqual(['user Ana > agent ada']);
  expect(at(7, at(9)).edges.size).toBe(0);
  expect(at(9, { seq: -90, edges: new Set() }).edges.size).toBe(0);
});

const nodesOf = (people: number, agents: number): GraphNode[] => [
  ...Array.from({ length: people }, (_, n) => ({ id: `p${n}`, kind: 'person' as const, name: `P${n}` })),
  ...Array.from({ length: agents }, (_, n) => ({ id: `a${n}`, kind: 'agent' as const, name: `A${n}` })),
];

test('no two boxes overlap, all are within the drawing, people are above agents, and the same is drawn twice', () => {
  fc.assert(
    fc.property(
      fc.nat(20),
      fc.nat(31),
      fc.record({
        width: fc.integer({ min: 320, max: 2_400 }),
        height: fc.integer({ min: 100, max: 1_400 }),
      }),
      (people, agents, room) => {
        const nodes = nodesOf(people, agents);
        const { places, box, width, height } = layoutGraph(nodes, room);
        expect([places.size, width]).toEqual([nodes.length, room.width]);
        const all = nodes.map(({ id, kind }) => ({ kind, ...(places.get(id) ?? { x: NaN, y: NaN }) }));
        for (const [index, a] of all.entries()) {
          expect(a.x - box.width / 2).toBeGreaterThanOrEqual(0);
          expect(a.x + box.width / 2).toBeLessThanOrEqual(width);
          expect(a.y - box.height / 2).toBeGreaterThanOrEqual(0);
          expect(a.y + box.height / 2).toBeLessThanOrEqual(height);
          for (const b of all.slice(index + 1)) {
            expect(Math.abs(a.x - b.x) >= box.width || Math.abs(a.y - b.y) >= box.height).toBe(true);
            if (a.kind === 'person' && b.kind === 'agent') expect(b.y).toBeGreaterThan(a.y);
          }
        }
        expect(layoutGraph(nodes, room)).toEqual({ places, box, width, height });
      },
    ),
  );
});

test('both directions have a line of their own, thicker with more messages; one to itself has none', () => {
  const layout = layoutGraph(nodesOf(0, 4), { width: 700, height: 400 });
  const [there, back] = [
    lineBetween(layout, { from: 'a0', to: 'a2' }),
    lineBetween(layout, { from: 'a2', to: 'a0' }),
  ];
  expect(there?.label).not.toEqual(back?.label);
  expect(lineBetween(layout, { from: 'a0', to: 'a0' })).toBeNull();
  const widths = [1, 2, 50, 1_000_000].map(thicknessOf);
  expect(widths).toEqual(widths.toSorted((a, b) => a - b));
  expect(widths.at(-1)).toBeLessThan(10);
});
