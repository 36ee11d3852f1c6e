import { expect, test } from 'vitest';
import type { Event } from '../../src/events/index.ts';
import * as bounds from '../../src/library/projection/model.ts';
import { foldEvents, newProjection } from '../../src/library/projection/projection.ts';
import { agent, ANA, ends, says, starts } from './logs.ts';

const ROUNDS = 10_000;
const LONG = 'word '.repeat(60);

/** Does not count tokens as a log would: that takes longer than all the rest. */
function numbered(draft: object, seq: number): Event {
  const envelope = { id: `e${seq}`, author: ANA, to: [], conversation: 'c', at: seq };
  return { ...envelope, ...draft, seq } as unknown as Event;
}

/** Ten events, each of which makes some list longer. */
function round(n: number): Event[] {
  const id = `agent-${n % 40}`;
  const turn = `c:${id}:${n}`;
  const own = (kind: string, body: object) => ({ kind, author: agent(id), turn, body });
  const calls = Array.from({ length: 30 }, (_, index) => ({
    id: `k${n}.${index}`,
    name: 'look',
    args: LONG,
  }));
  const tokens = { before: 10, after: 5 };
  const note = { agent: id, attempt: 1, step: 1, reason: 'over_budget', tokens, strategy: 'prune' };
  const first = n * 10 + 1;
  const log = [
    says(LONG, ['agent-0', 'agent-1', 'agent-2']),
    starts(id, n, first, [first]),
    own('step', { index: 0, content: LONG, calls }),
    own('compaction.progress', { ...note, phase: 'started' }),
    own('compaction.progress', { ...note, phase: 'pruned' }),
    own('question', { question: `q-${n}`, text: LONG, by: [], group: 'g', join: 'all' }),
    {
      kind: 'question.answered',
      body: { question: n % 2 === 0 ? `q-${n}` : 'x', outcome: 'answered', content: LONG },
    },
    { kind: 'command', body: { command: 'fork', fork: { conversation: `f-${n}`, seq: 1 } } },
    own('message', { content: LONG }),
    ends(id, n, n % 5 === 0 ? 'failed' : 'done', []),
  ];
  return log.map((event, index) => numbered(event, first + index));
}

test('a hundred thousand events leave a projection as large as ten thousand did', () => {
  let projection = newProjection('c');
  const sizes: number[] = [];
  for (let n = 0; n < ROUNDS; n++) {
    projection = foldEvents(projection, round(n));
    if (n === ROUNDS / 10 || n === ROUNDS - 1) sizes.push(JSON.stringify(projection).length);
  }
  const { turns, arrows, talk, tasks, compactions, forks, agents, totals } = projection;
  expect(totals).toMatchObject({ events: 100_000, turns: ROUNDS, failed: ROUNDS / 5, running: 0 });
  expect(totals.compactions).toBe(ROUNDS);
  const open = tasks.filter(({ endedAt }) => endedAt === null);
  expect({
    turns: turns.length,
    open: open.length,
    ended: tasks.length - open.length,
    compactions: compactions.length,
    forks: forks.length,
  }).toEqual({
    turns: bounds.MAX_TURNS,
    open: bounds.MAX_OPEN_TASKS,
    ended: bounds.MAX_TASKS,
    compactions: bounds.MAX_COMPACTIONS,
    forks: bounds.MAX_FORKS,
  });
  for (const [list, most] of [
    [arrows, bounds.MAX_ARROWS],
    [talk, bounds.MAX_TALK],
  ] as const) {
    expect(list.length).toBeGreaterThan(most * 0.9);
    expect(list.length).toBeLessThanOrEqual(most);
  }
  expect(agents['agent-0']?.pending).toHaveLength(bounds.MAX_PENDING);
  for (const { calls, callCount, said, trigger } of turns) {
    expect([calls.length, callCount]).toEqual([bounds.MAX_CALLS, 30]);
    expect(Math.max(said.length, trigger?.text.length ?? 0)).toBeLessThanOrEqual(bounds.MAX_SUMMARY);
  }
  expect(turns.at(-1)?.number).toBe(ROUNDS - 1);
  const [early = 0, late = 0] = sizes;
  // The numbers have more digits; nothing else grows.
  expect(late).toBeLessThan(early * 1.1);
});

test('agents beyond the limit are not listed', () => {
  const names = Array.from({ length: bounds.MAX_AGENTS + 10 }, (_, index) => `a${index}`);
  const log = names.map((name, index) => numbered(says('Hi', [], agent(name)), index + 1));
  const { agents, totals } = foldEvents(newProjection('c'), log);
  expect([Object.keys(agents).length, totals.events]).toEqual([bounds.MAX_AGENTS, names.length]);
});
