import * as z from 'zod';
import { expect, onTestFinished, test } from 'vitest';
import { defineTool } from '../../src/tools/tool.ts';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import type { AgentId, ConversationId } from '../../src/events/index.ts';
import { ROOM, UMA } from '../support/company.ts';
import { expectGolden, goldenPrompt, oneMinute } from '../support/golden-prompt.ts';
import { openTroupe } from '../support/mode.ts';
import { scripted } from './stage.ts';

const refund = defineTool({
  name: 'refund',
  description: 'Pays an order back.',
  schema: z.object({ order: z.number(), euros: z.number() }),
  needsApproval: true,
  run: ({ order }) => `order ${order} is paid back`,
});

const lookUp = defineTool({
  name: 'look_up',
  description: 'Finds an order.',
  schema: z.object({ order: z.number() }),
  run: ({ order }) => `order ${order}: a lamp, 40 euros, delivered broken`,
});

const over = (args: object) => ({ name: 'handoff', args: { to: 'sales', ...args } });

/** @desk makes these calls in its first answer, and says a last word if it is asked again. */
function desk(calls: object[], more: Partial<AgentInput> = {}): AgentInput {
  const rules = [{ when: { answer: 1, step: 1 }, reply: 'I see to it.', calls }, { reply: 'Let me know.' }];
  return scripted(
    'desk',
    { tools: ['handoff', ...(more.tools ?? [])], instructions: 'Serve people.' },
    rules,
  );
}

const SALES = scripted('sales', { instructions: 'Sell lamps.' });

async function play(agents: AgentInput[], definition: Partial<TroupeInput> = {}) {
  const troupe = await openTroupe(
    { agents, tools: [refund, lookUp], ...definition },
    { clock: oneMinute(), onWarning: () => {} },
  );
  onTestFinished(() => troupe.close());
  return {
    troupe,
    async say(content: string, to?: string) {
      await troupe.send(ROOM, { author: UMA, content, ...(to && { to: [to] }) });
      await troupe.idle();
    },
    async golden(turn: string, name: string) {
      await expectGolden(await goldenPrompt(troupe, `${ROOM}:${turn}`), `handoff-${name}`);
    },
    async command(command: 'pause' | 'retire' | 'resume', agent: string) {
      const about = { conversation: ROOM as ConversationId, agent: agent as AgentId };
      await troupe.command({ command, ...about }, UMA);
      await troupe.idle();
    },
  };
}

test('a newcomer reads the handoff, then the conversation', async () => {
  const room = await play([desk([over({ why: 'It is about buying.' })]), SALES]);
  await room.say('I want to buy a lamp', 'desk');
  await room.golden('sales:1', 'newcomer');
});

test('in the plain framing', async () => {
  const sales = { ...SALES, framing: 'plain' } as AgentInput;
  const room = await play([desk([over({ goal: 'Uma wants a lamp.', next: 'Ask which one.' })]), sales]);
  await room.say('I want to buy a lamp', 'desk');
  await room.golden('sales:1', 'plain');
});

test('the results of the turn that handed over are named, and can be read', async () => {
  const rules = [
    { when: { answer: 1, step: 1 }, calls: [{ name: 'look_up', args: { order: 7 } }] },
    { when: { step: 2 }, calls: [over({ goal: 'Uma gets a new lamp.' })] },
  ];
  const first = scripted('desk', { tools: ['handoff', 'look_up'] }, rules);
  const read = { name: 'read_artifact', args: { id: 'room:desk:1:result:0.0' } };
  const second = scripted('sales', { tools: ['look_up'] }, [
    { when: { contains: 'handed this conversation over to you' }, calls: [read] },
  ]);
  const room = await play([first, second]);
  await room.say('order 7 came broken', 'desk');
  await room.golden('sales:1', 'results');
  const { events } = await room.troupe.events(ROOM);
  const handoff = events.find(({ kind }) => kind === 'handoff');
  const [named] = handoff?.kind === 'handoff' ? handoff.body.summary.artifacts : [];
  const [id = ''] = named?.split(' ') ?? [];
  expect(events.find(({ kind, author }) => kind === 'tool.result' && author.id === 'desk')?.id).toBe(id);
  const result = events.findLast(({ kind, author }) => kind === 'tool.result' && author.id === 'sales');
  expect(result?.body).toMatchObject({ content: expect.stringContaining('a lamp, 40 euros') as string });
});

test('results of other turns stay with their agent', async () => {
  const first = scripted('desk', { tools: ['handoff', 'look_up'] }, [
    { when: { answer: 1, step: 1 }, calls: [{ name: 'look_up', args: { order: 7 } }] },
    { when: { contains: 'new one' }, calls: [over({ goal: 'Uma gets a new lamp.' })] },
  ]);
  const read = { name: 'read_artifact', args: { id: 'room:desk:1:result:0.0' } };
  const room = await play([
    first,
    scripted('sales', { tools: ['look_up'] }, [{ when: { step: 1 }, calls: [read] }]),
  ]);
  await room.say('order 7 came broken', 'desk');
  await room.say('I want a new one', 'desk');
  const { events } = await room.troupe.events(ROOM);
  const result = events.findLast(({ kind, author }) => kind === 'tool.result' && author.id === 'sales');
  expect(result?.body).toMatchObject({ outcome: 'failed' });
});

test('an approval that waits is told as open, and later as over', async () => {
  const calls = [
    { name: 'refund', args: { order: 7, euros: 40 } },
    over({ goal: 'Uma gets 40 euros back.' }),
  ];
  const room = await play([desk(calls, { tools: ['refund'] }), SALES]);
  await room.say('order 7 came broken', 'desk');
  await room.golden('sales:1', 'approval-waits');
  const { tasks } = await room.troupe.tasks(ROOM, { open: true });
  const request = tasks[0]?.id ?? 'none';
  await room.troupe.command(
    { command: 'decide', conversation: ROOM as ConversationId, request, approved: true },
    UMA,
  );
  await room.troupe.idle();
  await room.say('is it paid?', 'sales');
  await room.golden('sales:2', 'approval-decided');
});

test('a question that waits is told as open', async () => {
  const calls = [
    { name: 'ask', args: { question: 'Which account is yours?' } },
    over({ goal: 'Refund Uma.' }),
  ];
  const room = await play([desk(calls, { tools: ['ask'] }), SALES]);
  await room.say('order 7 came broken', 'desk');
  await room.golden('sales:1', 'question-waits');
});

test('a task that another agent works on is told as open', async () => {
  const task = { to: 'tester', task: 'Find out why lamp 7 breaks.' };
  const room = await play([
    desk([{ name: 'delegate', args: task }, over({ goal: 'Tell Uma why it broke.' })], {
      tools: ['delegate'],
    }),
    SALES,
    scripted('tester', { tools: ['ask'] }, [
      { calls: [{ name: 'ask', args: { question: 'Where is it?' } }] },
    ]),
  ]);
  await room.say('why did it break?', 'desk');
  await room.golden('sales:1', 'task-open');
});

test('the handoff stands at the end of a long block', async () => {
  const rules = [{ when: { contains: 'a new one' }, calls: [over({ goal: 'Uma buys a new lamp.' })] }];
  const room = await play([scripted('desk', { tools: ['handoff'] }, rules), SALES]);
  await room.say('hello', 'sales');
  for (let n = 1; n <= 8; n += 1)
    await room.say(`Lamp ${n} broke. ${'It flickers at night. '.repeat(40)}`, 'desk');
  await room.say('I want a new one', 'desk');
  const text = await goldenPrompt(room.troupe, `${ROOM}:sales:2`);
  expect(text.indexOf('handed this conversation over')).toBeGreaterThan(text.indexOf('I want a new one'));
  await expectGolden(text.replaceAll(/(?:It flickers at night\. ?){40}/g, '…'), 'handoff-long-block');
});

test('the conversation comes back', async () => {
  const back = [
    {
      when: { contains: 'no lamps' },
      calls: [{ name: 'handoff', args: { to: 'desk', next: 'Say sorry.' } }],
    },
  ];
  const room = await play([
    desk([over({ goal: 'Uma buys a lamp.' })]),
    scripted('sales', { tools: ['handoff'] }, [...back]),
  ]);
  await room.say('I want a lamp', 'desk');
  await room.say('you have no lamps', 'sales');
  await room.golden('desk:2', 'back');
});

test.each([
  ['paused', 'pause'],
  ['retired', 'retire'],
] as const)('a handoff to a %s agent is refused', async (state, command) => {
  const room = await play([desk([over({ goal: 'Uma buys a lamp.' })]), SALES]);
  await room.say('hello', 'sales');
  await room.command(command, 'sales');
  await room.say('I want a lamp', 'desk');
  const { events } = await room.troupe.events(ROOM);
  expect(events.some(({ kind }) => kind === 'handoff')).toBe(false);
  expect(events.find(({ kind }) => kind === 'tool.result')?.body).toMatchObject({
    outcome: 'failed',
    content: expect.stringContaining(`@sales is ${state} and takes no turns`) as string,
  });
  if (state === 'paused') await room.golden('desk:1', 'refused');
});

test('a handoff to a failed agent is refused', async () => {
  const broken = scripted('sales', {
    instructions: () => {
      throw new Error('no instructions today');
    },
  });
  const room = await play([desk([over({ goal: 'Uma buys a lamp.' })]), broken]);
  await room.say('hello', 'sales');
  await room.say('I want a lamp', 'desk');
  const { events } = await room.troupe.events(ROOM);
  const result = events.find(({ kind }) => kind === 'tool.result');
  expect(result?.body).toMatchObject({ content: expect.stringContaining('@sales has failed') as string });
});

test('in the thread of a task the tool is not offered', async () => {
  const lead = scripted('lead', { tools: ['delegate'], role: 'manager' }, [
    {
      when: { contains: 'where is lamp 7', step: 1 },
      calls: [{ name: 'delegate', args: { to: 'desk', task: 'Find lamp 7.' } }],
    },
    { reply: 'Asked.' },
  ]);
  const room = await play([lead, desk([], { tools: ['look_up'] }), SALES]);
  await room.say('where is lamp 7?', 'lead');
  const { events } = await room.troupe.events(ROOM);
  const opened = events.find(({ kind }) => kind === 'delegation.opened');
  const thread = opened?.kind === 'delegation.opened' ? opened.body.thread : 'none';
  const text = await goldenPrompt(room.troupe, `${thread}:desk:1`);
  expect(text).toContain('=== tools\nlook_up, read_artifact\n');
  await expectGolden(text, 'handoff-in-a-thread');
});

test('without a default agent, too, the next message goes to whom the conversation was handed', async () => {
  const room = await play([desk([over({ goal: 'Uma buys a lamp.' })]), SALES]);
  await room.say('I want a lamp', 'desk');
  await room.say('the blue one');
  const { events } = await room.troupe.events(ROOM);
  expect(events.findLast(({ author }) => author.kind === 'user')?.to).toEqual(['sales']);
});
