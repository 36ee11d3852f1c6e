import type { Interrupt } from '@ag-ui/client';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/tools/tool.ts';
import { clientOf, lines } from './ag-ui-client.ts';
import { openStage } from './stage.ts';

const HANDOFF = { calls: [{ name: 'handoff', args: '{"to":"billing","goal":"refund"}' }] };

test('a client talks to an agent, and goes on', async () => {
  await using stage = await openStage(['bo'], {
    agents: { bo: { name: 'Bo' } },
    answers: { bo: ['Blue.', 'Because of the sky.'] },
  });
  const client = clientOf(`${stage.url}/api/conversations/c1/ag-ui`);
  await client.say('u1', 'Which colour?');
  expect(client.told()).toEqual([
    'RUN_STARTED',
    'STEP_STARTED',
    'TEXT_MESSAGE_START',
    ...client.told().filter((type) => type === 'TEXT_MESSAGE_CONTENT'),
    'TEXT_MESSAGE_END',
    'STEP_FINISHED',
    'RUN_FINISHED',
  ]);
  expect(lines(client.agent.messages)).toEqual(['user Which colour?', 'assistant Bo: Blue.']);
  await client.say('u2', 'Why?');
  expect(lines(client.agent.messages).slice(2)).toEqual(['user Why?', 'assistant Bo: Because of the sky.']);
  expect(client.events.at(-1)).toMatchObject({
    outcome: { type: 'success' },
    result: 'Because of the sky.',
    usage: [{ inputTokens: expect.any(Number) }],
  });
  const { events } = await stage.troupe.events('c1');
  const said = events.filter(({ author }) => author.kind === 'user');
  expect(said.map(({ id, context }) => [id, context?.channel])).toEqual([
    ['u1', 'ag-ui'],
    ['u2', 'ag-ui'],
  ]);
});

test('several agents are told apart, and a handover is told', async () => {
  await using stage = await openStage(['desk', 'billing'], {
    agents: { desk: { name: 'Desk', tools: ['handoff'] }, billing: { name: 'Billing' } },
    answers: { desk: [{ text: 'One moment.', ...HANDOFF }], billing: ['It is refunded.'] },
  });
  const client = clientOf(`${stage.url}/api/ag-ui?to=desk`);
  await client.say('u1', 'Refund it.');
  expect(lines(client.agent.messages).filter((line) => !line.startsWith('tool'))).toEqual([
    'user Refund it.',
    'assistant Desk: One moment.',
    'call Desk: handoff {"to":"billing","goal":"refund"}',
    'assistant Billing: It is refunded.',
  ]);
  expect(client.events).toContainEqual(
    expect.objectContaining({
      type: 'CUSTOM',
      name: 'troupe.handoff',
      value: expect.objectContaining({ from: 'desk', to: ['billing'] }),
    }),
  );
  expect(client.agent.state).toMatchObject({
    agents: { desk: { name: 'Desk', status: 'idle' }, billing: { name: 'Billing', status: 'idle' } },
    tasks: {},
  });
  expect((await stage.troupe.events('t1')).events[0]?.to).toEqual(['desk']);
});

const CALL = 'call bo: pay {"euros":5}';

const pay = defineTool({
  name: 'pay',
  description: '',
  schema: z.object({ euros: z.number() }),
  needsApproval: true,
  run: ({ euros }) => `paid ${euros}`,
});

function paying() {
  return openStage(['bo'], {
    tools: [pay],
    agents: { bo: { tools: ['pay'] } },
    answers: { bo: [{ text: 'I pay.', calls: [{ name: 'pay', args: '{"euros":5}' }] }, 'Paid.'] },
  });
}

test('an approval interrupts the run, and the decision resumes it', async () => {
  await using stage = await paying();
  const client = clientOf(`${stage.url}/api/conversations/c1/ag-ui`);
  await client.say('u1', 'Pay.');
  const [interrupt] = client.agent.pendingInterrupts as [Interrupt];
  expect(interrupt).toMatchObject({
    reason: 'tool_call',
    message: 'bo asks to call pay {"euros":5}',
    metadata: { troupe: { agent: 'bo', tool: 'pay', args: '{"euros":5}' } },
  });
  const asked = client.agent.messages.find(({ role }) => role === 'assistant');
  expect(asked).toMatchObject({ toolCalls: [{ id: interrupt.toolCallId }] });
  expect(Object.keys((client.agent.state as { tasks: object }).tasks)).toEqual([interrupt.id]);
  const payload = { approved: true, editedArgs: { euros: 4 } };
  await client.agent.runAgent({ resume: [{ interruptId: interrupt.id, status: 'resolved', payload }] });
  expect(client.agent.pendingInterrupts).toEqual([]);
  expect(lines(client.agent.messages)).toEqual([
    'user Pay.',
    'assistant bo: I pay.',
    CALL,
    'tool paid 4',
    'assistant bo: Paid.',
  ]);
  expect(client.agent.messages[2]).toMatchObject({ toolCallId: interrupt.toolCallId });
  expect(client.told().filter((type) => type === 'TOOL_CALL_START')).toEqual([]);
  expect(client.agent.state).toMatchObject({ tasks: {}, agents: { bo: { status: 'idle' } } });
});

test.each([
  ['denied', { status: 'resolved', payload: { approved: false, note: 'too dear' } }, '[denied: too dear]'],
  ['dismissed', { status: 'cancelled' }, '[withdrawn: it was dismissed]'],
] as const)('an approval that is %s is told to the agent', async (_, response, result) => {
  await using stage = await paying();
  const client = clientOf(`${stage.url}/api/conversations/c1/ag-ui`);
  await client.say('u1', 'Pay.');
  const [interrupt] = client.agent.pendingInterrupts as [Interrupt];
  await client.agent.runAgent({ resume: [{ interruptId: interrupt.id, ...response }] });
  expect(lines(client.agent.messages)).toEqual([
    'user Pay.',
    'assistant bo: I pay.',
    CALL,
    `tool ${result}`,
    'assistant bo: Paid.',
  ]);
});

test('what somebody else has decided is told, and the run goes on', async () => {
  await using stage = await paying();
  const client = clientOf(`${stage.url}/api/conversations/c1/ag-ui`);
  await client.say('u1', 'Pay.');
  const [interrupt] = client.agent.pendingInterrupts as [Interrupt];
  const ben = { kind: 'user', id: 'ben', name: 'Ben' } as const;
  await stage.troupe.command(
    { command: 'decide', conversation: 'c1', request: interrupt.id, approved: true },
    ben,
  );
  const payload = { approved: false };
  await client.agent.runAgent({ resume: [{ interruptId: interrupt.id, status: 'resolved', payload }] });
  expect(client.events).toContainEqual(
    expect.objectContaining({
      name: 'troupe.refused',
      value: expect.objectContaining({ interruptId: interrupt.id, code: 'command_refused' }),
    }),
  );
  expect(lines(client.agent.messages).slice(3)).toEqual(['tool paid 5', 'assistant bo: Paid.']);
});

test('a question interrupts the run, and the answer resumes it', async () => {
  const args = '{"question":"Which one?","choices":["red","blue"]}';
  await using stage = await openStage(['bo'], {
    agents: { bo: { tools: ['ask'] } },
    answers: { bo: [{ calls: [{ name: 'ask', args }] }, 'Blue it is.'] },
  });
  const client = clientOf(`${stage.url}/api/conversations/c1/ag-ui`);
  await client.say('u1', 'Choose.');
  const [interrupt] = client.agent.pendingInterrupts as [Interrupt];
  expect(interrupt).toMatchObject({
    reason: 'input_required',
    message: 'Which one?',
    responseSchema: { enum: ['red', 'blue'] },
  });
  const resume = [{ interruptId: interrupt.id, status: 'resolved' as const, payload: 'green' }];
  await expect(client.agent.runAgent({ resume })).rejects.toThrow(/choose one of: red, blue/);
  await client.agent.runAgent({ resume: [{ ...resume[0]!, payload: 'blue' }] });
  expect(lines(client.agent.messages).filter((line) => !line.startsWith('tool'))).toEqual([
    'user Choose.',
    `call bo: ask ${args}`,
    'assistant bo: Which one?',
    'user User: blue',
    'assistant bo: Blue it is.',
  ]);
});

test('words of a model call that failed are taken back', async () => {
  await using stage = await openStage(['bo'], {
    answers: {
      bo: [
        'Before.',
        { text: 'A lost beginning of words', breaks: { after: 2, how: 'cut' } },
        'Whole words.',
      ],
    },
  });
  const client = clientOf(`${stage.url}/api/conversations/c1/ag-ui`);
  await client.say('u1', 'Go.');
  await client.say('u2', 'Go on.');
  const told = client.told();
  expect(told.filter((type) => type === 'TEXT_MESSAGE_START')).toHaveLength(2);
  expect(told.filter((type) => type === 'MESSAGES_SNAPSHOT')).toHaveLength(1);
  expect(lines(client.agent.messages)).toEqual([
    'user Go.',
    'assistant bo: Before.',
    'user Go on.',
    'assistant bo: Whole words.',
  ]);
});

test('a task is a sub-agent: it waits for an approval, and goes on with the decision', async () => {
  const delegate = { calls: [{ name: 'delegate', args: '{"to":"cy","task":"Pay 5."}' }] };
  await using stage = await openStage(['bo', 'cy'], {
    tools: [pay],
    agents: { bo: { tools: ['delegate'] }, cy: { tools: ['pay'] } },
    answers: {
      bo: [{ text: 'Cy pays.', ...delegate }, 'All done.'],
      cy: [{ text: 'I pay.', calls: [{ name: 'pay', args: '{"euros":5}' }] }, 'It is paid.'],
    },
  });
  const client = clientOf(`${stage.url}/api/conversations/c1/ag-ui?to=bo`);
  await client.say('u1', 'Go.');
  const [interrupt] = client.agent.pendingInterrupts as [Interrupt];
  const started = client.events.find(({ type }) => type === 'SUBAGENT_STARTED');
  expect(started).toMatchObject({ name: 'cy', description: 'Pay 5.' });
  expect(interrupt).toMatchObject({ reason: 'tool_call', subagentRunId: started?.['subagentRunId'] });
  expect(client.events).toContainEqual(
    expect.objectContaining({
      type: 'SUBAGENT_FINISHED',
      outcome: { type: 'suspended', interruptIds: [interrupt.id] },
    }),
  );
  const before = lines(client.agent.messages);
  const payload = { approved: true };
  await client.agent.runAgent({ resume: [{ interruptId: interrupt.id, status: 'resolved', payload }] });
  const withoutResults = (all: string[]) => all.filter((line) => !/^(?:> )?tool /.test(line));
  expect(withoutResults(before)).toEqual([
    'user Go.',
    'assistant bo: Cy pays.',
    `call bo: ${delegate.calls[0]?.name} ${delegate.calls[0]?.args}`,
    '> assistant cy: I pay.',
    '> call cy: pay {"euros":5}',
  ]);
  expect(withoutResults(lines(client.agent.messages))).toEqual([
    ...withoutResults(before),
    '> assistant cy: It is paid.',
    'assistant bo: All done.',
  ]);
  expect(lines(client.agent.messages)).toContain('> tool paid 5');
  expect(client.events.findLast(({ type }) => type === 'SUBAGENT_FINISHED')).toMatchObject({
    outcome: { type: 'success' },
    result: 'It is paid.',
  });
});

test('several messages at once are one, pictures are attachments, and tools are told to be ignored', async () => {
  await using stage = await openStage(['bo']);
  const client = clientOf(`${stage.url}/api/conversations/c1/ag-ui`);
  client.agent.setMessages([{ id: 's1', role: 'system', content: 'Be a pirate.' }]);
  client.agent.addMessage({ id: 'u1', role: 'user', content: 'Look.' });
  const source = { type: 'data' as const, value: PIXEL, mimeType: 'image/png' };
  client.agent.addMessage({
    id: 'u2',
    role: 'user',
    content: [
      { type: 'text', text: 'At this.' },
      { type: 'image', source },
    ],
  });
  const tools = [{ name: 'close_window', description: '', parameters: {} }];
  await client.agent.runAgent({ tools });
  const { events } = await stage.troupe.events('c1');
  expect(events.filter(({ author }) => author.kind === 'user')).toMatchObject([
    { id: 'u2', body: { content: 'Look.\n\nAt this.', attachments: [{ mediaType: 'image/png' }] } },
  ]);
  expect(client.events).toContainEqual(
    expect.objectContaining({ name: 'troupe.ignored', value: { tools: 1 } }),
  );
  await client.say('u3', 'And now?');
  expect(stage.requests('bo')).toHaveLength(2);
  expect(lines(client.agent.messages)).toEqual([
    'system Be a pirate.',
    'user User: Look.\n\nAt this.',
    'assistant bo: bo answers 1',
    'user And now?',
    'assistant bo: bo answers 2',
  ]);
});

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

test('an agent that fails ends the run with its error, and one that people have stopped cancels it', async () => {
  const asked = Promise.withResolvers<void>();
  await using stage = await openStage(['bo', 'cy'], {
    answers: {
      bo: () => ({ text: '', error: { code: 'provider_invalid_request' } }),
      cy(request) {
        asked.resolve();
        return request.gone.then(() => ({ text: 'Nobody hears it.' }));
      },
    },
  });
  const client = clientOf(`${stage.url}/api/conversations/c1/ag-ui?to=bo`);
  await client.say('u1', 'Go.');
  expect(client.events.at(-1)).toMatchObject({
    type: 'RUN_ERROR',
    code: 'provider_invalid_request',
    message: expect.stringMatching(/^@bo: /),
  });
  const other = clientOf(`${stage.url}/api/conversations/c2/ag-ui?to=cy`);
  const run = other.say('u1', 'Go.');
  await asked.promise;
  await stage.troupe.command({ command: 'abort', turn: 'c2:cy:1' }, { kind: 'user', id: 'ana', name: 'Ana' });
  await run;
  expect(other.events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } });
});

const said = { threadId: 't1', runId: 'r1', messages: [{ id: 'u1', role: 'user', content: 'x' }] };
const deep = JSON.parse(`${'['.repeat(500)}${']'.repeat(500)}`) as unknown;

test.each([
  ['no messages', { threadId: 't1', runId: 'r1' }],
  ['no thread', { ...said, threadId: undefined }],
  ['a role that is none', { ...said, messages: [{ id: 'u1', role: 'boss', content: 'x' }] }],
  ['no words', { ...said, messages: [{ id: 'u1', role: 'user', content: '' }] }],
  ['no content', { ...said, messages: [{ id: 'u1', role: 'user' }] }],
  ['a number', { ...said, messages: [{ id: 'u1', role: 'user', content: 5 }] }],
  ['deep rubbish', { ...said, messages: [{ id: 'u1', role: 'user', content: deep }] }],
  ['many messages', { ...said, messages: Array.from({ length: 10_001 }, () => 0) }],
  [
    'a sound from nowhere',
    {
      ...said,
      messages: [
        { id: 'u1', role: 'user', content: [{ type: 'audio', source: { type: 'file', value: 'f1' } }] },
      ],
    },
  ],
  ['a decision without a decision', { ...said, resume: [{ interruptId: 'a-1', status: 'resolved' }] }],
  ['a status that is none', { ...said, resume: [{ interruptId: 'a-1', status: 'maybe' }] }],
  ['a resume that is none', { ...said, resume: 'x' }],
  ['an agent that does not exist', said, '?to=nobody'],
  ['an agent that cannot exist', said, '?to=a%20b'],
])('%s is refused in words', async (_, body, query = '') => {
  await using stage = await openStage(['bo']);
  const response = await fetch(`${stage.url}/api/conversations/c1/ag-ui${query}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const { error } = (await response.json()) as { error: { code: string } };
  expect([response.status, error.code]).toEqual([
    400,
    expect.stringMatching(/^(?:event_invalid|agent_unknown)$/),
  ]);
});

test('ids and messages of a client may be anything', async () => {
  await using stage = await openStage(['bo']);
  const client = clientOf(`${stage.url}/api/conversations/c1/ag-ui`);
  client.agent.setMessages([
    { id: '__proto__', role: 'assistant', content: 'I said.', toolCalls: [] },
    { id: 'constructor', role: 'tool', toolCallId: '__proto__', content: 'x' },
    { id: 'r', role: 'reasoning', content: 'hm' },
  ]);
  await client.say('_nano:id/1', 'Go.');
  await client.agent.runAgent();
  expect(lines(client.agent.messages)).toEqual([
    'reasoning hm',
    'user User: Go.',
    'assistant bo: bo answers 1',
  ]);
  expect((await stage.troupe.events('c1')).events[0]?.id).toBe('ag-ui-_nano-id-1');
  expect(stage.requests('bo')).toHaveLength(1);
});

test('the door is behind the keys: scopes, tenants, and conversations that are granted', async () => {
  await using stage = await openStage(['bo'], { isKeyed: true });
  const { troupe, url } = stage;
  const keyFor = async (more: object) =>
    (await troupe.keys.create({ name: 'phone', scopes: ['read', 'write'], ...more })).secret;
  const mine = await keyFor({ conversations: ['mine-*'] });
  const mute = await keyFor({ scopes: ['read'] });
  const deaf = await keyFor({ scopes: ['write'] });
  async function ask(key: string, conversation: string, messages: unknown[] = said.messages) {
    const paths = [`/api/conversations/${conversation}/ag-ui`, '/api/ag-ui'];
    const answers = await Promise.all(
      paths.map((path) =>
        fetch(`${url}${path}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify({ ...said, threadId: conversation, messages }),
        }),
      ),
    );
    await Promise.all(answers.map((answer) => answer.text()));
    return answers.map(({ status }) => status);
  }
  expect(await ask('wrong', 'mine-1')).toEqual([401, 401]);
  expect(await ask(mine, 'yours-1')).toEqual([404, 404]);
  expect(await ask(mine, 'yours-1', [])).toEqual([404, 404]);
  expect(await ask(mute, 'mine-1')).toEqual([403, 403]);
  expect(await ask(deaf, 'mine-1', [])).toEqual([403, 403]);
  expect(await ask(mine, 'mine-1')).toEqual([200, 200]);
  expect(stage.requests('bo')).toHaveLength(1);
});
