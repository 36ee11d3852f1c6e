import { expect, test } from 'vitest';
import type { Tree } from '../../src/library/projection/tree.ts';
import { ANA, readStream, scripted, startApi, type StreamFrame } from './harness.ts';

const give = (to: string, task: string) => ({ reply: '', calls: [{ name: 'delegate', args: { to, task } }] });
const LEAD = {
  ...scripted('lead', [
    { when: { contains: 'It is dry' }, reply: 'Then we build.' },
    give('surveyor', 'look up plot 7'),
  ]),
  tools: ['delegate'],
};
const SURVEYOR = {
  ...scripted('surveyor', [
    { when: { contains: 'no water' }, reply: 'It is dry.' },
    give('digger', 'dig a hole'),
  ]),
  tools: ['delegate'],
};
const DIGGER = scripted('digger', [{ reply: 'no water' }]);

const lines = ({ nodes }: Tree) => {
  const depth = (id: string | null): number =>
    id === null ? 0 : 1 + depth(nodes.find((node) => node.id === id)?.parent ?? null);
  return nodes
    .toSorted((a, b) => a.at - b.at || depth(a.parent) - depth(b.parent))
    .map(
      (node) =>
        `${depth(node.parent)} ${node.kind} ${node.from} > ${node.to}: ${node.said || node.text}, ${node.state}`,
    );
};

const isEnd = ({ data }: StreamFrame) => data['kind'] === 'turn.done';

test('the tree of a conversation has its turns and tasks over the threads of all tasks, each under what it came from', async () => {
  await using api = await startApi({ company: { agents: [LEAD, SURVEYOR, DIGGER] } });
  const news = await api.app.request('/api/events?threadsOf=c');
  const told = readStream(news, (frames) => frames.filter(isEnd).length >= 2);
  await api.post('/api/conversations/c/events', { author: ANA, to: ['lead'], content: 'May we build?' });
  await api.troupe.idle();
  const { body } = await api.get('/api/conversations/c/tree');
  const tree = body as unknown as Tree;
  expect(lines(tree).toSorted()).toEqual([
    '0 turn Ana > lead: May we build?, done',
    '1 task lead > surveyor: look up plot 7, done',
    '1 turn surveyor > lead: Then we build., done',
    '2 turn lead > surveyor: look up plot 7, done',
    '3 task surveyor > digger: dig a hole, done',
    '3 turn digger > surveyor: It is dry., done',
    '4 turn surveyor > digger: no water, done',
  ]);
  expect(tree.left).toEqual({ threads: 0, turns: 0, tasks: 0 });
  expect((await api.get('/api/conversations/nobody/tree')).status).toBe(404);
  // Whoever shows the tree is told of each event in its threads, and of no other.
  const threads = new Set(tree.nodes.map(({ thread }) => thread).filter((thread) => thread !== null));
  const frames = await told;
  expect(new Set(frames.map(({ data }) => data['conversation']))).toEqual(threads);
  expect(frames[0]).toEqual({
    event: 'thread',
    id: null,
    data: { conversation: expect.any(String), seq: 1, kind: expect.any(String) },
  });
  expect((await api.get('/api/events?threadsOf=c&conversation=c')).status).toBe(400);
});

test('the tree has the tasks that the projection no longer keeps', async () => {
  const many = Array.from({ length: 104 }, (_, n) => ({
    name: 'delegate',
    args: { to: 'digger', task: `hole ${n}` },
  }));
  const lead = {
    ...scripted('lead', [
      { when: { contains: 'no water' }, reply: 'All dug.' },
      { reply: '', calls: many },
    ]),
    tools: ['delegate'],
  };
  await using api = await startApi({
    agents: [lead, DIGGER],
    troupe: { constants: { limits: { maxOpenTasks: 200 } } },
  });
  await api.post('/api/conversations/c/events', { author: ANA, to: ['lead'], content: 'Dig.' });
  await api.troupe.idle();
  const { nodes, left } = (await api.get('/api/conversations/c/tree')).body as unknown as Tree;
  const tasks = nodes.filter(({ kind }) => kind === 'task');
  expect(new Set(tasks.map(({ text }) => text)).size).toBe(104);
  expect(new Set(tasks.map(({ state, parent }) => `${state} of ${parent}`))).toEqual(
    new Set(['done of c:lead:1']),
  );
  expect(left).toEqual({ threads: 4, turns: 0, tasks: 0 });
});
