import { type BaseEvent, HttpAgent, type HttpAgentConfig, type Interrupt, type Message } from '@ag-ui/client';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/tools/tool.ts';
import { openStage } from './stage.ts';

interface Client {
  agent: HttpAgent;
  events: BaseEvent[];
  /** The events of the last run, without those of the state. */
  told(): string[];
  say(id: string, content: Extract<Message, { role: 'user' }>['content']): Promise<void>;
}

/** The real client: it checks every event against the schemas of the protocol, and their order. */
function clientOf(url: string, config: Partial<HttpAgentConfig> = {}): Client {
  const agent = new HttpAgent({ url, threadId: 't1', ...config });
  const events: BaseEvent[] = [];
  agent.subscribe({ onEvent: ({ event }) => void events.push(event) });
  return {
    agent,
    events,
    told: () => {
      const last = events.findLastIndex(({ type }) => type === 'RUN_STARTED');
      return events
        .slice(last)
        .map(({ type }) => String(type))
        .filter((type) => !type.startsWith('STATE_'));
    },
    async say(id, content) {
      agent.addMessage({ id, role: 'user', content });
      await agent.runAgent();
    },
  };
}

/** Author and words of each message. */
const words = ({ agent }: Client) =>
  agent.messages.map((message) => {
    const name = 'name' in message && message.name ? `${message.name}: ` : '';
    return `${message.role} ${name}${typeof message.content === 'string' ? message.content : ''}`;
  });

const calls = ({ agent }: Client) =>
  agent.messages.flatMap((message) =>
    message.role === 'assistant'
      ? (message.toolCalls ?? []).map(({ function: made }) => `${made.name} ${made.arguments}`)
      : [],
  );

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
  expect(words(client)).toEqual(['user Which colour?', 'assistant Bo: Blue.']);
  await client.say('u2', 'Why?');
  expect(words(client).slice(2)).toEqual(['user Why?', 'assistant Bo: Because of the sky.']);
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
  expect(words(client).filter((line) => !line.startsWith('tool'))).toEqual([
    'user Refund it.',
    'assistant Desk: One moment.',
    'assistant Billing: It is refunded.',
  ]);
  expect(calls(client)).toEqual(['handoff {"to":"billing","goal":"refund"}']);
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
  expect(words(client)).toEqual(['user Pay.', 'assistant bo: I pay.', 'tool paid 4', 'assistant bo: Paid.']);
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
  expect(words(client)).toEqual([
    'user Pay.',
    'assistant bo: I pay.',
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
  expect(words(client).slice(2)).toEqual(['tool paid 5', 'assistant bo: Paid.']);
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
  expect(words(client).filter((line) => !line.startsWith('tool'))).toEqual([
    'user Choose.',
    'assistant bo: ',
    'assistant bo: Which one?',
    'user User: blue',
    'assistant bo: Blue it is.',
  ]);
});
