import type { Interrupt } from '@ag-ui/client';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../../src/tools/tool.ts';
import { clientOf, lines } from './ag-ui-client.ts';
import { openStage, PAY, PAYS } from './stage.ts';

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

function paying() {
  return openStage(['bo'], {
    tools: [PAY],
    agents: { bo: { tools: ['pay'] } },
    answers: { bo: [{ text: 'I pay.', ...PAYS }, 'Paid.'] },
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
  ['dismissed', { status: 'cancelled' }, '[cancelled: it was dismissed]'],
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
  // The answer is not a separate message, though it looks like one.
  const { head } = await stage.troupe.events('c1');
  await client.agent.runAgent();
  expect(lines(client.agent.messages).at(-1)).toBe('assistant bo: Blue it is.');
  expect((await stage.troupe.events('c1')).head).toBe(head);
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
    tools: [PAY],
    agents: { bo: { tools: ['delegate'] }, cy: { tools: ['pay'] } },
    answers: {
      bo: [{ text: 'Cy pays.', ...delegate }, 'All done.'],
      cy: [{ text: 'I pay.', ...PAYS }, 'It is paid.'],
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

test('words of the runtime, and messages for people only, are told and compared', async () => {
  await using stage = await openStage(['bo']);
  const ana = { kind: 'user', id: 'ana', name: 'Ana' } as const;
  const clock = { kind: 'system', id: 'clock', name: 'Clock' } as const;
  await stage.troupe.send('c1', { author: clock, content: 'It is noon.', replyTo: 'x' });
  await stage.troupe.send('c1', { author: ana, content: 'Between us.', includeInContext: false });
  const client = clientOf(`${stage.url}/api/conversations/c1/ag-ui`);
  await client.agent.runAgent();
  expect(lines(client.agent.messages)).toEqual(['system Clock: It is noon.', 'user Ana: Between us.']);
  await client.agent.runAgent();
  await client.say('u1', 'Go.');
  expect(client.told()).not.toContain('MESSAGES_SNAPSHOT');
  expect(lines(client.agent.messages).slice(2)).toEqual(['user Go.', 'assistant bo: bo answers 1']);
});

test('how far a tool is, is told', async () => {
  const dig = defineTool({
    name: 'dig',
    description: '',
    schema: z.object({}),
    run(_, { progress }) {
      progress?.({ text: 'half', done: 1, total: 2 });
      return 'dug';
    },
  });
  await using stage = await openStage(['bo'], {
    tools: [dig],
    agents: { bo: { tools: ['dig'] } },
    answers: { bo: [{ calls: [{ name: 'dig', args: '{}' }] }, 'Done.'] },
  });
  const client = clientOf(`${stage.url}/api/conversations/c1/ag-ui`);
  await client.say('u1', 'Dig.');
  const toolCallId = client.agent.messages.find(({ role }) => role === 'tool')?.['toolCallId' as never];
  expect(client.events.find(({ type }) => type === 'CUSTOM')).toMatchObject({
    name: 'troupe.progress',
    value: { toolCallId, text: 'half', done: 1, total: 2 },
  });
});
