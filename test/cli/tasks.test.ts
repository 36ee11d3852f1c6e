import { expect, test } from 'vitest';
import { workplace } from './harness.ts';

/** @bo asks people, gives a task to @cy, or asks to send a mail; @cy asks people about its task. */
const COMPANY = `
import { defineTool } from '${new URL('../../src/tools/tool.ts', import.meta.url).href}';
const mail = defineTool({
  name: 'mail',
  description: 'Sends a mail.',
  schema: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] },
  needsApproval: true,
  run: ({ to }) => 'sent to ' + to,
});
const ask = (name, args) => ({ reply: '', calls: [{ name, args }] });
const bo = [
  { when: { contains: 'sent to' }, reply: 'the mail is out' },
  { when: { contains: 'is denied' }, reply: 'then no mail' },
  { when: { contains: 'answer to q-' }, reply: 'painted' },
  { when: { contains: 'result of d-' }, reply: 'cy is done' },
  { when: { contains: 'was cancelled' }, reply: 'then not' },
  { when: { contains: 'write a mail' }, ...ask('mail', { to: 'eve' }) },
  { when: { contains: 'paint' }, ...ask('ask', { question: 'Which colour?', choices: ['red', 'blue'] }) },
  { when: { contains: 'hand on' }, ...ask('delegate', { to: 'cy', task: 'build a boat' }) },
  { when: { contains: 'count' }, ...ask('delegate', { to: 'di', task: 'count' }) },
  { reply: 'nothing to do' },
];
const cy = [
  { when: { contains: 'answer to q-' }, reply: 'the boat is built' },
  ask('ask', { question: 'How long?' }),
];
const scripted = (id, rules, tools) => ({ id, name: id, provider: 'scripted', model: 'test', script: { rules }, tools });
export default {
  agents: [
    scripted('bo', bo, ['ask', 'delegate', 'mail']),
    scripted('cy', cy, ['ask']),
    scripted('di', [{ reply: 'seven' }], []),
  ],
  tools: [mail],
  defaults: { respondWhenUnaddressed: 'bo' },
};
`;

function place() {
  const made = workplace({ agents: null });
  made.write('agents.js', COMPANY.replace('export default', 'export default'));
  made.write('package.json', { type: 'module' });
  return made;
}

interface Listed {
  tasks: {
    id: string;
    kind: string;
    end: { outcome: string } | null;
    thread: string;
    tasks: Listed['tasks'];
  }[];
}

test('tasks names the attachments that a task took along', async () => {
  using made = place();
  made.write('notes.md', '# Notes');
  await made.call(['send', 'c', 'please count', '--to', 'bo', '--attach', 'notes.md', '--wait']);
  const { out } = await made.call(['tasks', 'c']);
  expect(out).toContain('@bo → @di with notes.md: count');
});

test("send ends with an agent's question and the command to answer it; answer continues", async () => {
  using at = place();
  const sent = await at.call(['send', 'c', 'paint it', '--as', 'Ana']);
  expect(sent).toMatchObject({ code: 0, err: '' });
  const line = /@bo asks: Which colour\? \[red \/ blue\]; answer with: troupe answer c (q-[0-9a-f]{12}) TEXT/;
  const id = line.exec(sent.out)?.[1] ?? '';
  expect(id).not.toBe('');
  const { out } = await at.call(['stuck', '--after', '0']);
  expect(out).toMatch(
    /^@bo in c waits for an answer of a person for \d+ s\n  Which colour\?: troupe answer c q-/,
  );
  expect(out).toContain(id);

  const wrong = await at.call(['answer', 'c', id, 'green', '--as', 'Ana', '--json']);
  expect(wrong).toMatchObject({ code: 1, json: { error: { code: 'event_invalid' } } });
  const answered = await at.call(['answer', 'c', id.slice(0, 5), 'red', '--as', 'Ana', '--json']);
  expect(answered).toMatchObject({
    code: 0,
    json: {
      event: { kind: 'question.answered', author: { id: 'ana', name: 'Ana' }, body: { content: 'red' } },
      replies: [{ body: { content: 'painted' } }],
      waiting: [],
    },
  });
  const late = await at.call(['answer', 'c', id, 'blue', '--as', 'Ben']);
  expect(late.code).toBe(1);
  expect(late.err).toMatch(
    /^command_refused: Ben \(ben\) could not answer q-.*: Ana \(ana\) answered "red" at/,
  );
  const none = await at.call(['answer', 'c', 'q-none', 'blue']);
  expect(none.err).toMatch(/^task_unknown: .*there is no such question/);
  expect((await at.call(['trace', 'c:bo:1'])).out).toMatch(
    /question .*bo asks: Which colour\? \[red \/ blue\]/,
  );
});

test('a call is approved or denied on the command line', async () => {
  using at = place();
  const first = await at.call(['send', 'c', 'write a mail']);
  const id = /troupe approve c (a-[0-9a-f]{12}), or: troupe deny c a-/.exec(first.out)?.[1] ?? '';
  const other = await at.call(['approve', 'c', id, '--args-hash', 'nope']);
  expect([other.code, other.err]).toEqual([1, expect.stringContaining('approval for other arguments')]);
  const done = await at.call(['approve', 'c', id, '--note', 'go', '--as', 'Ana']);
  expect(done).toMatchObject({ code: 0, out: expect.stringContaining('bo: the mail is out') as string });
  await at.call(['send', 'c', 'write a mail']);
  const { json } = await at.call(['tasks', 'c', '--open', '--json']);
  const open = (json as unknown as Listed).tasks;
  expect(open).toMatchObject([{ kind: 'approval', tool: 'mail', args: '{"to":"eve"}', end: null }]);
  const denied = await at.call(['deny', 'c', open[0]?.id ?? '']);
  expect(denied.out).toContain('bo: then no mail');
  expect((await at.call(['tasks', 'c'])).out).toMatch(
    /^a-\w+ {2}approved {2}@bo asks to call mail \{"to":"eve"\}\na-\w+ {2}denied {2}@bo/,
  );
});

test('an approver changes the arguments on the command line', async () => {
  using at = place();
  const first = await at.call(['send', 'c', 'write a mail']);
  const id = /troupe approve c (a-[0-9a-f]{12}), or: troupe deny c a-/.exec(first.out)?.[1] ?? '';
  for (const args of ['{"to":', '"dan"', '[]', 'null']) {
    const wrong = await at.call(['approve', 'c', id, '--args', args]);
    expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining('--args: give a JSON object')]);
  }
  const unfit = await at.call(['approve', 'c', id, '--args', '{"to":1}']);
  expect(unfit.err).toMatch(
    /^event_invalid: args: the changed arguments do not fit the schema of mail: to: /,
  );
  const done = await at.call(['approve', 'c', id, '--args', '{"to":"dan"}', '--as', 'Ana']);
  expect(done).toMatchObject({ code: 0, out: expect.stringContaining('bo: the mail is out') as string });
  expect((await at.call(['trace', 'c:bo:2'])).out).toContain('dan');
});

test('send waits for tasks between agents, and shows those that wait for people in a thread', async () => {
  using at = place();
  const counted = await at.call(['send', 'c0', 'count']);
  expect(counted).toMatchObject({ code: 0, out: expect.stringContaining('bo: cy is done') as string });

  const sent = await at.call(['send', 'c', 'hand on']);
  const found = /@cy asks: How long\?; answer with: troupe answer (c\.d-[0-9a-f]{12}) (q-\w+) TEXT/.exec(
    sent.out,
  );
  const [, thread = '', question = ''] = found ?? [];
  expect(sent.code).toBe(0);
  const tree = await at.call(['tasks', 'c', '--tree']);
  expect(tree.out).toMatch(
    /^d-\w+ {2}open {2}@bo → @cy: build a boat.*\n {2}q-\w+ {2}open {2}@cy asks: How long\?/,
  );
  const nested = (await at.call(['tasks', 'c', '--tree', '--json'])).json as unknown as Listed;
  expect(nested.tasks[0]?.tasks).toMatchObject([{ id: question, kind: 'question' }]);
  expect((await at.call(['tasks', thread])).out).toMatch(
    /is the thread of a task: @bo in c gave d-\w+ to @cy/,
  );

  await at.call(['answer', thread, question, 'ten feet']);
  expect((await at.call(['tasks', 'c', '--tree', '--open'])).out).toBe('no tasks\n');
  expect((await at.call(['export', 'c'])).out).toContain('cy is done');
  const listed = async (kind: string) =>
    (
      (await at.call(['ls', '--kind', kind, '--json'])).json['conversations'] as {
        id: string;
        parent: string;
      }[]
    ).map(({ id, parent }) => `${id.replace(/d-.*/, 'd')} of ${parent}`);
  expect((await listed('conversation')).toSorted()).toEqual(['c of null', 'c0 of null']);
  expect((await listed('thread')).toSorted()).toEqual(['c.d of c', 'c0.d of c0']);
  const headers = async (...options: string[]) =>
    (await at.call(['export', 'c', ...options])).out
      .split('\n')
      .filter((line) => line.startsWith('{"troupe":'));
  expect(await headers()).toHaveLength(2);
  expect(await headers('--no-threads')).toHaveLength(1);
});

test('a task is cancelled on the command line, with its subtasks', async () => {
  using at = place();
  await at.call(['send', 'c', 'hand on']);
  const { tasks } = (await at.call(['tasks', 'c', '--json'])).json as unknown as Listed;
  const [task] = tasks;
  const off = await at.call(['cancel', 'c', task?.id ?? '', '--reason', 'too dear', '--as', 'Ana']);
  expect(off).toMatchObject({ code: 0, out: expect.stringContaining('bo: then not') as string });
  const tree = (await at.call(['tasks', 'c', '--tree', '--json'])).json as unknown as Listed;
  expect(tree.tasks).toMatchObject([
    { end: { outcome: 'cancelled' }, tasks: [{ end: { outcome: 'cancelled' } }] },
  ]);
  const again = await at.call(['cancel', 'c', task?.id ?? '', '--as', 'Ben']);
  expect(again.err).toMatch(/^command_refused: .*it ended as cancelled at .*, by Ana \(ana\)/);
});

test('with a server, --wait ends when the agents wait for people, and an answer without it is accepted at once', async () => {
  using at = place();
  await using dev = await at.dev(['agents.js']);
  const sent = await at.call(['send', 'c', 'hand on', '--wait', '--json']);
  expect(sent).toMatchObject({
    code: 0,
    json: { replies: [], waiting: [{ task: { kind: 'question', owner: 'cy' } }] },
  });
  const [wait] = sent.json['waiting'] as { conversation: string; task: { id: string } }[];
  const args = ['answer', wait?.conversation ?? '', wait?.task.id ?? '', 'ten feet', '--url', dev.url];
  expect((await at.call(args)).out).toMatch(/^accepted as seq \d+ of c\.d-\w+, for @cy\n$/);
  const asked = await at.call(['send', 'c', 'paint it', '--wait', '--json']);
  const [open] = asked.json['waiting'] as { task: { id: string } }[];
  const answered = await at.call(['answer', 'c', open?.task.id ?? '', 'Blue', '--wait', '--json']);
  expect(answered.json).toMatchObject({
    event: { body: { content: 'blue' } },
    replies: [{ body: { content: 'painted' } }],
  });
});

test('a question for some people names them in the list of tasks', async () => {
  const calls = [{ name: 'ask', args: { question: 'Which?', by: ['ana', 'ben'] } }];
  const script = { rules: [{ when: { step: 1 }, calls }, { reply: '' }] };
  using at = workplace({ agents: { agents: [{ id: 'bo', provider: 'scripted', script, tools: ['ask'] }] } });
  await at.call(['send', 'c', 'paint it', '--to', 'bo']);
  expect((await at.call(['tasks', 'c'])).out).toMatch(/@bo asks: Which\? \(by ana, ben, until \S+ \S+\)$/m);
});
