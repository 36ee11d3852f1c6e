import { expect, test } from 'vitest';
import type { Tree } from '../../src/projection/tree.ts';
import { ANA, scripted, startApi } from './harness.ts';

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

test('the tree of a conversation has its turns and tasks over the threads of all tasks, each under what it came from', async () => {
  await using api = await startApi({ company: { agents: [LEAD, SURVEYOR, DIGGER] } });
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
  expect(tree.left).toEqual({ threads: 0, turns: 0 });
  expect((await api.get('/api/conversations/nobody/tree')).status).toBe(404);
});
