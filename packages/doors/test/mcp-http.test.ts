import { expect, test } from 'vitest';
import { overHttp, textOf } from './mcp-client.ts';
import { openStage, PAY, PAYS } from './stage.ts';

const ASKS = { calls: [{ name: 'ask', args: '{"question":"Which colour?","choices":["red","blue"]}' }] };

test.each(['modern', 'legacy'] as const)('agents are tools that answer: %s protocol', async (era) => {
  await using stage = await openStage(['desk', 'billing'], {
    agents: {
      desk: { name: 'Desk', description: 'Knows every parcel.', capabilities: ['parcels'] },
      billing: { name: 'Billing' },
    },
    answers: { desk: ['It is in Bonn.', 'Tomorrow.'] },
  });
  const client = await overHttp(stage.url, { era });
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual([
    'ask',
    'ask_desk',
    'ask_billing',
    'answer',
    'decide',
    'status',
    'cancel',
  ]);
  expect(tools[1]?.description).toContain('desk, Desk: Knows every parcel. (parcels)');
  const lines: string[] = [];
  const first = await client.callTool(
    { name: 'ask_desk', arguments: { message: 'Where is my parcel?' } },
    { onprogress: ({ message }) => void lines.push(message ?? '') },
  );
  expect(first.structuredContent).toMatchObject({ status: 'answered', text: 'It is in Bonn.', waits: [] });
  expect(textOf(first)).toContain('It is in Bonn.');
  expect(lines).toEqual(['Desk: It is in Bonn.']);
  const { conversation } = first.structuredContent as { conversation: string };
  const second = await client.callTool({
    name: 'ask',
    arguments: { agent: 'desk', message: 'When does it come?', conversation },
  });
  expect(second.structuredContent).toMatchObject({ text: 'Tomorrow.', conversation });
  const { events } = await stage.troupe.events(conversation);
  expect(events[0]).toMatchObject({ to: ['desk'], author: { kind: 'user' }, context: { channel: 'mcp' } });
  await client.close();
});

test('several agents that answer are told apart', async () => {
  await using stage = await openStage(['desk', 'billing'], {
    agents: { desk: { name: 'Desk', tools: ['handoff'] }, billing: { name: 'Billing' } },
    answers: {
      desk: [{ text: 'One moment.', calls: [{ name: 'handoff', args: '{"to":"billing","goal":"refund"}' }] }],
      billing: ['It is refunded.'],
    },
  });
  const client = await overHttp(stage.url);
  const { structuredContent } = await client.callTool({
    name: 'ask_desk',
    arguments: { message: 'Refund it.' },
  });
  expect(structuredContent).toMatchObject({ status: 'answered', text: 'It is refunded.' });
});

test('an answer that takes longer than the client waits is fetched later, and sent once', async () => {
  const gate = Promise.withResolvers<void>();
  await using stage = await openStage(['bo'], {
    answers: {
      bo: async () => {
        await gate.promise;
        return { text: 'At last.' };
      },
    },
  });
  const client = await overHttp(stage.url);
  const early = await client.callTool({ name: 'ask_bo', arguments: { message: 'Think.', wait: 0 } });
  const { status, id } = early.structuredContent as { status: string; id: string };
  expect(status).toBe('working');
  expect(textOf(early)).toContain(`"id":"${id}"`);
  gate.resolve();
  const late = await client.callTool({ name: 'status', arguments: { id, wait: 30 } });
  expect(late.structuredContent).toMatchObject({ status: 'answered', text: 'At last.', id });
  expect(stage.requests('bo')).toHaveLength(1);
});

test('approvals and questions are put to the user of a client that can ask', async () => {
  await using stage = await openStage(['bo'], {
    tools: [PAY],
    agents: { bo: { tools: ['pay', 'ask'] } },
    answers: { bo: [PAYS, ASKS, 'Paid, and painted blue.'] },
  });
  const asked: string[] = [];
  const client = await overHttp(stage.url, {
    elicit(message) {
      asked.push(message);
      const content = message.includes('wants') ? { approved: true, note: 'once' } : { answer: 'blue' };
      return { action: 'accept', content };
    },
  });
  const { structuredContent } = await client.callTool({ name: 'ask_bo', arguments: { message: 'Go.' } });
  expect(structuredContent).toMatchObject({ status: 'answered', text: 'Paid, and painted blue.' });
  expect(asked).toEqual(['@bo wants to call pay {"euros":5}', '@bo asks: Which colour?']);
  const { conversation } = structuredContent as { conversation: string };
  const { events } = await stage.troupe.events(conversation);
  const said = events.filter(({ kind, author }) => kind === 'message' && author.kind === 'user');
  expect(said).toHaveLength(1);
  expect(stage.raw('bo').map(({ content }) => content)).toContainEqual(expect.stringContaining('paid 5'));
});

test('a client that cannot ask is told how to decide and answer with the tools', async () => {
  await using stage = await openStage(['bo'], {
    tools: [PAY],
    agents: { bo: { tools: ['pay', 'ask'] } },
    answers: { bo: [PAYS, ASKS, 'Painted blue.'] },
  });
  const client = await overHttp(stage.url);
  const first = await client.callTool({ name: 'ask_bo', arguments: { message: 'Go.' } });
  const waiting = first.structuredContent as {
    status: string;
    conversation: string;
    waits: { id: string }[];
  };
  expect(waiting).toMatchObject({
    status: 'waiting',
    waits: [{ kind: 'approval', agent: 'bo', tool: 'pay', args: '{"euros":5}' }],
  });
  const { conversation, waits } = waiting;
  expect(textOf(first)).toContain(`"request":"${waits[0]?.id}"`);
  const second = await client.callTool({
    name: 'decide',
    arguments: { conversation, request: waits[0]?.id, approved: true },
  });
  const asked = second.structuredContent as { waits: { id: string }[] };
  expect(asked).toMatchObject({
    status: 'waiting',
    waits: [{ kind: 'question', text: 'Which colour?', choices: ['red', 'blue'] }],
  });
  const third = await client.callTool({
    name: 'answer',
    arguments: { conversation, question: asked.waits[0]?.id, text: 'blue' },
  });
  expect(third.structuredContent).toMatchObject({ status: 'answered', text: 'Painted blue.' });
  const again = await client.callTool({
    name: 'decide',
    arguments: { conversation, request: waits[0]?.id, approved: false },
  });
  expect(again.isError).toBe(true);
  expect(textOf(again)).toMatch(/command_refused|task_unknown/);
});

const SHIP = {
  id: 'ship',
  directive: 'ship it',
  steps: [
    { id: 'plan', agent: 'ana', brief: 'write the plan' },
    { id: 'draft', agent: 'bo', brief: 'write the draft' },
  ],
};

test('workflows are tools that run to their end', async () => {
  await using stage = await openStage(['ana', 'bo'], {
    isKeyed: true,
    definition: { workflows: [SHIP] },
    answers: { ana: ['The plan.'], bo: ['The draft.'] },
  });
  const { troupe } = stage;
  expect(troupe.workflows).toEqual([
    {
      id: 'ship',
      directive: 'ship it',
      steps: [
        { id: 'plan', agent: 'ana' },
        { id: 'draft', agent: 'bo' },
      ],
    },
  ]);
  const operator = await troupe.keys.create({ name: 'o', scopes: ['read', 'write', 'operate'] });
  const client = await overHttp(stage.url, { headers: { authorization: `Bearer ${operator.secret}` } });
  const { tools } = await client.listTools();
  expect(tools.find(({ name }) => name === 'run_ship')?.description).toContain(
    'ship: ship it. Steps: plan (ana), draft (bo).',
  );
  const { structuredContent } = await client.callTool({
    name: 'run_ship',
    arguments: { directive: 'ship 2.0' },
  });
  expect(structuredContent).toMatchObject({
    status: 'answered',
    text: '**ana:** The plan.\n\n**bo:** The draft.',
  });
  expect(JSON.stringify(stage.requests('ana')[0]?.body)).toContain('ship 2.0');
  const { secret } = await troupe.keys.create({ name: 'w', scopes: ['read', 'write'] });
  const writer = await overHttp(stage.url, { headers: { authorization: `Bearer ${secret}` } });
  expect((await writer.listTools()).tools.map(({ name }) => name)).not.toContain('run_ship');
});

test('words of a model call that failed are in no answer', async () => {
  await using stage = await openStage(['bo'], {
    answers: {
      bo: [{ text: 'Half an ans', breaks: { after: 1, how: 'cut' } }, 'The whole answer.'],
    },
  });
  const client = await overHttp(stage.url);
  const { structuredContent } = await client.callTool({ name: 'ask_bo', arguments: { message: 'Go.' } });
  expect(structuredContent).toMatchObject({ status: 'answered', text: 'The whole answer.' });
  expect(stage.requests('bo')).toHaveLength(2);
});

test('an agent that fails is an error of the tool, in words', async () => {
  await using stage = await openStage(['bo'], {
    answers: { bo: () => ({ text: '', error: { code: 'provider_invalid_request' } }) },
  });
  const client = await overHttp(stage.url);
  const result = await client.callTool({ name: 'ask_bo', arguments: { message: 'Go.' } });
  expect(result).toMatchObject({ isError: true, structuredContent: { status: 'failed' } });
  expect(textOf(result)).toContain('[@bo gave no answer (provider_invalid_request)');
});
