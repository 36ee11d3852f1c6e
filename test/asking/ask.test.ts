import { expect, test } from 'vitest';
import * as z from 'zod';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import { defineTool } from '../../src/tools/tool.ts';
import type { Note } from '../../src/library/troupe.ts';
import { company, UMA } from '../support/company.ts';
import { openTroupe } from '../support/mode.ts';

const scripted = (id: string, rules: object[], more: Partial<AgentInput> = {}) =>
  ({ id, provider: 'scripted', script: { rules }, ...more }) as AgentInput;

test('a question to the only agent gets its answer, in one line', async () => {
  await using troupe = await openTroupe({ agents: [scripted('bo', [{ reply: 'Blue.' }])] });
  const { text, outcome, replies, events, usage, cost } = await troupe.ask('c', 'Which colour?');
  expect([text, outcome]).toEqual(['Blue.', 'answered']);
  expect(replies.map(({ author }) => author.id)).toEqual(['bo']);
  expect(events[0]).toMatchObject({ kind: 'message', author: { id: 'user' }, to: ['bo'] });
  expect(events.at(-1)?.kind).toBe('turn.done');
  expect(cost).toBeNull();
  expect(usage.output).toBeGreaterThan(0);
});

test('it tells the tokens and the price of the answer', async () => {
  const usage = { input: 1_000, cacheRead: 0, cacheWrite: 0, output: 200, reasoning: 0 };
  await using room = await company(['p'], {
    answers: { p: [{ text: 'Blue.', usage }] },
    agents: { p: { price: { input: 2, output: 10, cacheRead: 0.2, cacheWrite: 2.5 } } },
  });
  const answer = await room.troupe.ask('c', 'Which colour?');
  expect(answer.usage).toMatchObject({ input: 1_000, output: 200 });
  expect(answer.cost).toBeCloseTo(0.004);
});

test('the answer is that of the last agent after a hand-over', async () => {
  await using troupe = await openTroupe({
    agents: [
      scripted('desk', [{ calls: [{ name: 'handoff', args: { to: 'sales', goal: 'sell' } }] }], {
        tools: ['handoff'],
      }),
      scripted('sales', [{ reply: 'Three left.' }]),
    ],
  });
  const { text, replies } = await troupe.ask('c', { author: UMA, to: ['desk'], content: 'Any left?' });
  expect(text).toBe('Three left.');
  expect(replies.map(({ author }) => author.id)).toEqual(['sales']);
});

test('a task in a thread is awaited, and its tokens count', async () => {
  const agents = { boss: { tools: ['delegate'] } };
  const answers = {
    boss: [
      { calls: [{ name: 'delegate', args: JSON.stringify({ to: 'hand', task: 'count' }) }] },
      'It is 42.',
    ],
    hand: ['42'],
  };
  await using room = await company(['boss', 'hand'], { agents, answers });
  const answer = await room.troupe.ask('c', { to: ['boss'], content: 'How many?' });
  expect([answer.text, answer.outcome]).toEqual(['It is 42.', 'answered']);
  const turns = [...room.requests('boss'), ...room.requests('hand')];
  expect(turns.length).toBeGreaterThanOrEqual(3);
  const own = answer.events.flatMap((event) => (event.kind === 'turn.done' ? [event.body.usage.output] : []));
  expect(answer.usage.output).toBeGreaterThan(own.reduce((sum, tokens) => sum + tokens, 0));
});

test('of a thread that had another task before, what belongs to the new task is told and counted', async () => {
  const call = (name: string, args: object) => ({ calls: [{ name, args: JSON.stringify(args) }] });
  const usage = { input: 1_000, cacheRead: 0, cacheWrite: 0, output: 10, reasoning: 0 };
  await using room = await company(['boss', 'hand'], {
    agents: { boss: { tools: ['delegate', 'follow_up'] } },
    answers: {
      boss: [
        { ...call('delegate', { to: 'hand', task: 'draft a title' }), usage },
        { text: 'Done.', usage },
        { ...call('follow_up', { task: 'd-', text: 'shorter' }), usage },
        { text: 'Shorter now.', usage },
      ],
      hand: [
        { text: 'A very long title', usage },
        { text: 'Title', usage },
      ],
    },
  });
  const first = await room.troupe.ask('c', { to: ['boss'], content: 'A title?' });
  const parts: Note[] = [];
  const second = room.troupe.stream('c', { to: ['boss'], content: 'Shorter!' });
  let next = await second.next();
  for (; !next.done; next = await second.next()) parts.push(next.value);
  expect([first.usage.input, next.value.usage.input]).toEqual([3_000, 3_000]);
  const said = parts.flatMap((part) =>
    part.type === 'event' && part.event.kind === 'message' && part.event.author.id === 'hand'
      ? [part.event.body.content]
      : [],
  );
  expect(said).toEqual(['Title']);
});

test('it ends where an agent waits for a person, with the words so far, and names the wait', async () => {
  const pay = defineTool({
    name: 'pay',
    description: 'pays',
    schema: z.object({}),
    needsApproval: true,
    run: () => 'paid',
  });
  const rules = [
    { when: { step: 1 }, reply: 'Ana has to allow it.', calls: [{ name: 'pay', args: {} }] },
    { reply: 'Paid.' },
  ];
  await using troupe = await openTroupe({
    agents: [scripted('bo', rules, { tools: ['pay'] })],
    tools: [pay],
  });
  const answer = await troupe.ask('c', 'Pay it.');
  expect(answer.outcome).toBe('waiting');
  expect([answer.text, answer.replies]).toEqual(['Ana has to allow it.', []]);
  expect(answer.waits).toMatchObject([{ conversation: 'c', task: { kind: 'approval' } }]);
});

test('a failed turn is an outcome with its reason, not an exception', async () => {
  await using room = await company(['p'], {
    answers: { p: [{ error: { code: 'provider_auth' } }] },
    onWarning: () => undefined,
  });
  const answer = await room.troupe.ask('c', 'hi');
  expect(answer).toMatchObject({
    outcome: 'failed',
    text: '',
    failures: [{ agent: 'p', code: 'provider_auth' }],
  });
});

test('the end of its signal or its time ends the wait, and the agent goes on', async () => {
  const open = Promise.withResolvers<void>();
  await using room = await company(['p'], {
    answers: {
      p: async () => {
        await open.promise;
        return { text: 'late' };
      },
    },
  });
  const stop = new AbortController();
  const asked = room.troupe.ask('c', 'hi', { signal: stop.signal });
  stop.abort();
  await expect(asked).rejects.toMatchObject({
    code: 'aborted',
    message: expect.stringContaining('at work: @p'),
  });
  await expect(room.troupe.ask('c2', 'hi', { timeoutMs: 1 })).rejects.toMatchObject({ code: 'aborted' });
  open.resolve();
  await room.troupe.idle();
  const { events } = await room.troupe.events('c');
  expect(events.some(({ kind, body }) => kind === 'message' && body.content === 'late')).toBe(true);
});

test('a message that no agent is to answer is an error that says what to do', async () => {
  await using troupe = await openTroupe({ agents: [scripted('a', [{}]), scripted('b', [{}])] });
  await expect(troupe.ask('c', 'hi')).rejects.toMatchObject({
    code: 'agent_unknown',
    message: expect.stringContaining('name one in "to"'),
  });
});

test('one conversation is at rest while another is still at work', async () => {
  const open = Promise.withResolvers<void>();
  await using room = await company(['slow', 'fast'], {
    answers: {
      slow: async () => {
        await open.promise;
        return { text: 'done' };
      },
    },
  });
  await room.troupe.send('one', { author: UMA, to: ['slow'], content: 'hi' });
  expect((await room.troupe.ask('two', { to: ['fast'], content: 'hi' })).text).toBe('fast answers 1');
  await room.troupe.idle({ conversation: 'two' });
  open.resolve();
  await room.troupe.idle({ conversation: 'one' });
  expect((await room.troupe.events('one')).events.at(-1)?.kind).toBe('turn.done');
});

test('a stream yields what happens as it happens, and returns the answer', async () => {
  await using troupe = await openTroupe({ agents: [scripted('bo', [{ reply: 'Blue and green.' }])] });
  const parts: string[] = [];
  const going = troupe.stream('c', 'Which colour?');
  let next = await going.next();
  let text = '';
  for (; !next.done; next = await going.next()) {
    parts.push(next.value.type === 'event' ? next.value.event.kind : next.value.type);
    if (next.value.type === 'text') text += next.value.text;
  }
  expect(next.value.text).toBe('Blue and green.');
  expect(text).toBe('Blue and green.');
  expect(parts.indexOf('text')).toBeLessThan(parts.indexOf('message'));
});

test('a conversation is followed from any event on, and what comes is told', async () => {
  await using troupe = await openTroupe({ agents: [scripted('bo', [{ reply: 'ok' }])] });
  const { events } = await troupe.ask('c', 'one');
  const stop = new AbortController();
  const followed: number[] = [];
  for await (const event of troupe.follow('c', { after: 1, signal: stop.signal })) {
    followed.push(event.seq);
    if (event.seq === events.length) await troupe.send('c', { author: UMA, to: ['bo'], content: 'two' });
    if (event.seq > events.length && event.kind === 'turn.done') stop.abort();
  }
  const { head } = await troupe.state('c');
  expect(followed).toEqual(Array.from({ length: head - 1 }, (_, n) => n + 2));
});
