import { expect, test } from 'vitest';
import type { Event } from '../../../src/events/index.ts';
import { answered, type LogReader } from '../src/compose-reply.ts';

type Row = { id: string; kind: string; by?: string; turn?: string; replyTo?: string; body?: object };

/** A log of these events, seqs from 1, at most `page` to a page. */
function logOf(rows: readonly Row[], page: number): { log: LogReader; events: Event[] } {
  const events = rows.map(({ by = 'ana', kind, ...row }, index) => ({
    ...row,
    kind,
    seq: index + 1,
    conversation: 'c',
    author: { kind: by === 'ana' ? 'user' : 'agent', id: by, name: by },
    body: row.body ?? {},
  })) as unknown as Event[];
  const log: LogReader = {
    events: async (_, { after = 0, limit = 500 } = {}) => ({
      events: events.slice(after, after + Math.min(limit, page)),
      head: events.length,
    }),
  };
  return { log, events };
}

async function answeredIds(rows: readonly Row[], page = 500): Promise<string[]> {
  const { log, events } = logOf(rows, page);
  const said = events.at(-1);
  if (!said) throw new Error('an empty log');
  const ids: string[] = [];
  for await (const { id } of answered(log, said)) ids.push(id);
  return ids;
}

const started = (turn: string, inputs: number[]): Row => ({
  id: `${turn}:started`,
  kind: 'turn.started',
  by: 'agent',
  turn,
  body: { inputs },
});
const reply = (turn: string): Row => ({ id: `${turn}:reply`, kind: 'message', by: 'agent', turn });
const noise = Array.from({ length: 450 }, (_, n) => ({ id: `n${n}`, kind: 'message', by: 'bot' }));

test('a reply answers the inputs of its turn, newest first, however many messages came meanwhile', async () => {
  const rows = [
    { id: 'one', kind: 'message' },
    { id: 'two', kind: 'message' },
    started('t1', [1, 2]),
    ...noise,
    { id: 'three', kind: 'message' },
    reply('t1'),
  ];
  expect(await answeredIds(rows)).toEqual(['two', 'one', 'three']);
  // A page of large events is short.
  expect(await answeredIds(rows, 7)).toEqual(['two', 'one', 'three']);
});

test('after a handoff, the reply answers the message that the other agent got', async () => {
  const rows = [
    { id: 'asked', kind: 'message' },
    started('t1', [1]),
    { id: 'handed', kind: 'handoff', by: 'agent', turn: 't1' },
    { id: 'later', kind: 'message' },
    started('t2', [3]),
    reply('t2'),
  ];
  expect(await answeredIds(rows)).toEqual(['asked', 'later']);
});

test('a reply to the result of a task answers the message that led to the task', async () => {
  const rows = [
    { id: 'asked', kind: 'message' },
    started('t1', [1]),
    { id: 'opened', kind: 'delegation.opened', by: 'agent', turn: 't1', body: { delegation: 'd-1' } },
    { id: 'later', kind: 'message' },
    { id: 'ended', kind: 'delegation.ended', by: 'other', turn: 'x', body: { delegation: 'd-1' } },
    started('t2', [5]),
    reply('t2'),
  ];
  expect((await answeredIds(rows))[0]).toBe('asked');
});

test('a message passed on by an operator leads to the held message', async () => {
  const rows = [
    { id: 'held', kind: 'message' },
    { id: 'later', kind: 'message' },
    { id: 'dispatched', kind: 'message', replyTo: 'held' },
    started('t1', [3]),
    reply('t1'),
  ];
  expect(await answeredIds(rows)).toEqual(['dispatched', 'held', 'dispatched']);
});

test('a circle of turns ends', async () => {
  const rows = [started('t1', [2]), { id: 'handed', kind: 'handoff', by: 'agent', turn: 't1' }, reply('t1')];
  expect(await answeredIds(rows)).toEqual([]);
});
