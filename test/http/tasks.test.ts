import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/tools/tool.ts';
import { ANA, type Answer, type Harness, scripted, startApi } from './harness.ts';

const BEN = { kind: 'user', id: 'u2', name: 'Ben' } as const;

const calls = (name: string, args: object) => ({ reply: '', calls: [{ name, args }] });
const BO = {
  ...scripted('bo', [
    { when: { contains: 'sent to' }, reply: 'the mail is out' },
    { when: { contains: 'is denied' }, reply: 'then no mail' },
    { when: { contains: 'answer to q-' }, reply: 'painted' },
    { when: { contains: 'result of d-' }, reply: 'cy says: {{last}}' },
    { when: { contains: 'was cancelled' }, reply: 'then not' },
    { when: { contains: 'mail' }, ...calls('mail', { to: 'eve' }) },
    { when: { contains: 'paint' }, ...calls('ask', { question: 'Which colour?', choices: ['red', 'blue'] }) },
    { when: { contains: 'build' }, ...calls('delegate', { to: 'cy', task: 'build a boat' }) },
    { reply: 'fine' },
  ]),
  tools: ['ask', 'delegate', 'mail'],
};
const CY = { ...scripted('cy', [calls('ask', { question: 'How long?' })]), tools: ['ask'] };

function start(people?: string[]): Promise<Harness> & { sent: string[] } {
  const sent: string[] = [];
  const mail = defineTool({
    name: 'mail',
    description: 'Sends a mail.',
    schema: z.object({ to: z.string() }),
    needsApproval: { by: ['u1', 'u2'] },
    run({ to }) {
      sent.push(to);
      return `sent to ${to}`;
    },
  });
  return Object.assign(
    startApi({
      company: { agents: [BO, CY], tools: [mail], ...(people && { trust: { people } }) },
    }),
    { sent },
  );
}

interface Listed {
  tasks: { id: string; thread?: string; argsHash?: string; openedAt: { event: string } }[];
}

async function say(api: Harness, content: string, more: object = {}): Promise<Answer> {
  const body = { author: ANA, to: ['bo'], content, ...more };
  const posted = await api.post('/api/conversations/c/events', body);
  await api.troupe.idle();
  return posted;
}

async function open(api: Harness): Promise<Listed['tasks']> {
  const { body } = await api.get('/api/conversations/c/tasks?open=true');
  return (body as unknown as Listed).tasks;
}

function command(api: Harness, body: object): Promise<Answer> {
  return api.post('/api/commands', { conversation: 'c', author: ANA, ...body });
}

test('open and ended tasks are listed, with the task of a thread', async () => {
  await using api = await start();
  await say(api, 'build it');
  await say(api, 'paint it');
  const { status, body } = await api.get('/api/conversations/c/tasks');
  expect(status).toBe(200);
  expect(body).toMatchObject({
    thread: null,
    tasks: [
      { kind: 'delegation', owner: 'bo', assignee: 'cy', text: 'build a boat', join: 'all', end: null },
      { kind: 'question', owner: 'bo', text: 'Which colour?', by: [], choices: ['red', 'blue'], end: null },
    ],
  });
  const [build, colour] = (body as unknown as Listed).tasks;
  expect(colour).toMatchObject({
    deadline: expect.any(Number) as number,
    openedAt: {
      event: 'c:bo:2:asked:0.0',
      seq: expect.any(Number) as number,
      at: expect.any(Number) as number,
    },
  });
  const thread = `/api/conversations/${build?.thread}/tasks`;
  expect((await api.get(thread)).body).toMatchObject({
    thread: { task: build?.id, delegator: 'bo', assignee: 'cy', home: 'c', isOpen: true },
    tasks: [{ kind: 'question', owner: 'cy', text: 'How long?' }],
  });
  await command(api, { command: 'answer', question: colour?.id, content: 'red' });
  expect((await open(api)).map(({ id }) => id)).toEqual([build?.id]);
  expect((await api.get('/api/conversations/c/tasks?open=false')).body).toMatchObject({
    tasks: [{ end: null }, { end: { outcome: 'answered' } }],
  });
  const wrong = await api.get('/api/conversations/c/tasks?open=perhaps');
  expect([wrong.status, wrong.body]).toMatchObject([400, { error: { data: { path: 'open' } } }]);
  expect((await api.get('/api/conversations/none/tasks')).status).toBe(404);
});

test('answer, decide and cancelTask are accepted as the event that ends the task; the agent continues', async () => {
  const starting = start();
  await using api = await starting;
  await say(api, 'send a mail');
  const [mail] = await open(api);
  const decided = await command(api, {
    command: 'decide',
    request: mail?.id,
    approved: true,
    argsHash: mail?.argsHash,
  });
  expect(decided).toMatchObject({
    status: 202,
    body: { event: { kind: 'approval.decided', author: ANA, to: ['bo'], body: { outcome: 'approved' } } },
  });
  await api.troupe.idle();
  expect(starting.sent).toEqual(['eve']);

  await say(api, 'paint it');
  const [colour] = await open(api);
  const answer = { command: 'answer', question: colour?.openedAt.event, content: 'red' };
  const [first, again] = [await command(api, answer), await command(api, answer)];
  expect(first).toMatchObject({
    status: 202,
    body: { event: { kind: 'question.answered', whileBusy: 'steer' } },
  });
  expect(again.body).toEqual(first.body);
  await api.troupe.idle();

  await say(api, 'build it');
  const [boat] = await open(api);
  const off = await command(api, { command: 'cancelTask', task: boat?.id, reason: 'too dear' });
  expect(off).toMatchObject({
    status: 202,
    body: {
      event: { kind: 'delegation.ended', author: ANA, body: { outcome: 'cancelled', result: 'too dear' } },
    },
  });
  await api.troupe.idle();
  const { body } = await api.get('/api/conversations/c/events');
  const words = (body['events'] as { kind: string; body: { content: string } }[])
    .filter(({ kind }) => kind === 'message')
    .map((event) => event.body.content);
  expect(words).toEqual(['send a mail', 'the mail is out', 'paint it', 'painted', 'build it', 'then not']);
});

test('a reply to a question over HTTP is stored and answers it', async () => {
  await using api = await start();
  await say(api, 'paint it');
  const [colour] = await open(api);
  const reply = await say(api, 'BLUE', { to: [], replyTo: colour?.openedAt.event });
  expect(reply).toMatchObject({
    status: 201,
    body: { event: { kind: 'message', body: { content: 'BLUE' } } },
  });
  expect(await open(api)).toEqual([]);
  const { body } = await api.get('/api/conversations/c/tasks');
  expect(body).toMatchObject({ tasks: [{ end: { outcome: 'answered' } }] });
});

test('impossible commands are refused with a code, and attempts on a task are logged', async () => {
  const starting = start();
  await using api = await starting;
  await say(api, 'paint it');
  await say(api, 'send a mail');
  const [colour, mail] = await open(api);
  const request = mail?.id;
  const question = colour?.id;
  const cy = { kind: 'agent', id: 'cy', name: 'cy' };
  const cases: [object, number, string][] = [
    [{ command: 'answer', question: 'q-nothing', content: 'red' }, 404, 'task_unknown'],
    [{ command: 'answer', question: request, content: 'red' }, 404, 'task_unknown'],
    [{ command: 'decide', request: 'a-nothing', approved: true }, 404, 'task_unknown'],
    [{ command: 'cancelTask', task: 'nothing' }, 404, 'task_unknown'],
    [{ command: 'answer', question, content: 'red', conversation: 'none' }, 404, 'conversation_unknown'],
    [{ command: 'answer', question, content: 'green' }, 400, 'event_invalid'],
    [{ command: 'answer', question, content: ' ' }, 400, 'event_invalid'],
    [{ command: 'answer', question }, 400, 'event_invalid'],
    [{ command: 'decide', request, approved: 'yes' }, 400, 'event_invalid'],
    [{ command: 'decide', request }, 400, 'event_invalid'],
    [{ command: 'answer', question, content: 'red', author: cy }, 409, 'command_refused'],
    [{ command: 'decide', request, approved: true, author: cy }, 409, 'command_refused'],
    [{ command: 'decide', request, approved: true, author: { ...ANA, id: 'u9' } }, 409, 'command_refused'],
    [{ command: 'decide', request, approved: true, argsHash: 'other' }, 409, 'command_refused'],
    [{ command: 'cancelTask', task: question, author: cy }, 409, 'command_refused'],
  ];
  for (const [body, status, code] of cases) {
    const refused = await command(api, body);
    expect([body, refused.status, refused.body]).toMatchObject([body, status, { error: { code } }]);
  }
  await api.troupe.idle();
  expect(starting.sent).toEqual([]);
  expect(await open(api)).toHaveLength(2);
  const logged = async () =>
    (await api.troupe.events('c')).events.filter(({ kind }) => kind === 'error').length;
  expect(await logged()).toBe(9);
  await command(api, { command: 'decide', request, approved: false });
  for (let flood = 0; flood < 5; flood++) {
    const late = await command(api, { command: 'decide', request, approved: true, author: BEN });
    expect([late.status, late.body]).toMatchObject([
      409,
      {
        error: {
          code: 'command_refused',
          message: expect.stringContaining('Ana (u1) denied it at') as string,
        },
      },
    ]);
  }
  await api.troupe.idle();
  expect(starting.sent).toEqual([]);
  expect(await logged()).toBe(10);
});

test('an untrusted person can neither answer nor decide, and the attempt is logged', async () => {
  const starting = start(['u1']);
  await using api = await starting;
  await say(api, 'paint it');
  await say(api, 'send a mail');
  const [colour, mail] = await open(api);
  for (const body of [
    { command: 'answer', question: colour?.id, content: 'red' },
    { command: 'decide', request: mail?.id, approved: true },
    { command: 'cancelTask', task: colour?.id },
  ]) {
    const refused = await command(api, { ...body, author: BEN });
    expect([refused.status, refused.body]).toMatchObject([409, { error: { code: 'command_refused' } }]);
  }
  await say(api, 'red', { to: [], author: BEN, replyTo: colour?.openedAt.event });
  expect(await open(api)).toHaveLength(2);
  expect(starting.sent).toEqual([]);
  const errors = (await api.troupe.events('c')).events.filter(({ kind }) => kind === 'error');
  expect(errors).toHaveLength(3);
});

test("the runtime's ids of refusals and task ends cannot be taken in advance", async () => {
  await using api = await start();
  await say(api, 'paint it');
  const [colour] = await open(api);
  for (const id of [`${colour?.id}:end`, 'refused:0123456789abcdef01234567']) {
    expect(await say(api, 'red', { id })).toMatchObject({
      status: 409,
      body: { error: { code: 'event_conflict' } },
    });
  }
  await command(api, { command: 'answer', question: colour?.id, content: 'red' });
  expect(await open(api)).toEqual([]);
});

test('the document describes the commands about tasks', async () => {
  await using api = await start();
  const { body } = await api.get('/api/openapi.json');
  const paths = JSON.stringify(body['paths']);
  for (const field of [
    '"answer"',
    '"decide"',
    '"cancelTask"',
    '"argsHash"',
    '/api/conversations/{conversation}/tasks',
  ])
    expect(paths).toContain(field);
});
