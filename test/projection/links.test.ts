import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Event } from '../../src/events/index.ts';
import { type Link, MAX_LINKS } from '../../src/library/projection/model.ts';
import { foldEvents, newProjection } from '../../src/library/projection/projection.ts';
import { moves, RandomRun } from '../support/random-run.ts';
import { agent, ANA, folded, logOf, says, SYSTEM } from './logs.ts';

const countsOf = (links: readonly Link[]) =>
  links
    .map(
      ({ from, to, messages, tasks, handoffs, seq }) =>
        `${from} > ${to}: ${messages} ${tasks} ${handoffs}, last ${seq}`,
    )
    .toSorted();

/** The same, counted by hand. */
function counted(log: readonly Event[]): string[] {
  const found = new Map<string, { messages: number; tasks: number; handoffs: number; seq: number }>();
  for (const { kind, author, to, seq } of log) {
    if (kind === 'command' || (kind === 'injection' && author.kind === 'system')) continue;
    for (const each of to) {
      const key = `${author.kind === 'agent' ? author.id : author.name} > ${each}`;
      const counts = found.get(key) ?? { messages: 0, tasks: 0, handoffs: 0, seq };
      counts[kind === 'handoff' ? 'handoffs' : 'messages'] += 1;
      found.set(key, { ...counts, seq });
    }
  }
  return [...found]
    .map(
      ([key, { messages, tasks, handoffs, seq }]) => `${key}: ${messages} ${tasks} ${handoffs}, last ${seq}`,
    )
    .toSorted();
}

test('the links of a projection are what its log has addressed to agents, at every event', () => {
  fc.assert(
    fc.property(moves, fc.nat(), (all, pick) => {
      const { log } = new RandomRun().play(all).player;
      const some = log.slice(0, log.length === 0 ? 0 : pick % log.length);
      for (const part of [some, log])
        expect(countsOf(foldEvents(newProjection('c'), part).links)).toEqual(counted(part));
    }),
    { numRuns: 60 },
  );
});

test('a task is counted from who gave it to who works on it, in both logs; a retry is no message', () => {
  const body = {
    delegation: 'd-1',
    thread: 'c--d-1',
    home: 'c',
    delegator: 'ada',
    assignee: 'bob',
    task: 'Look',
  };
  const given = { kind: 'delegation.opened', author: agent('ada'), body };
  const result = { delegation: 'd-1', outcome: 'done', result: 'seen' };
  const links = folded(
    logOf(
      says('Go', ['ada'], ANA),
      given,
      { kind: 'delegation.ended', author: agent('bob'), to: ['ada'], body: result },
      { kind: 'command', to: ['ada'], body: { command: 'retry', agent: 'ada', turn: 'c:ada:1' } },
      { kind: 'injection', author: SYSTEM, to: ['ada'], body: { content: 'late', oneStep: false } },
    ),
  ).links;
  expect(countsOf(links)).toEqual([
    'Ana > ada: 1 0 0, last 1',
    'ada > bob: 0 1 0, last 2',
    'bob > ada: 1 0 0, last 3',
  ]);
  const thread = folded(logOf({ ...given, to: ['bob'] })).links;
  expect(countsOf(thread)).toEqual(['ada > bob: 0 1 0, last 1']);
});

test('links beyond the limit are counted together', () => {
  const log = logOf(
    ...Array.from({ length: MAX_LINKS + 5 }, (_, index) =>
      says('Hi', ['ada'], { ...ANA, name: `n${index}` }),
    ),
    says('Again', ['ada'], { ...ANA, name: 'n0' }),
  );
  const { links, totals } = folded(log);
  expect([links.length, totals.unlinked, links[0]?.messages]).toEqual([MAX_LINKS, 5, 2]);
});
