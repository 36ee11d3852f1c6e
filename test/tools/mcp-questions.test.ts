import { expect, test } from 'vitest';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import { Form, formAnswer, questionOf, createAsking } from '../../src/tools/mcp/input-required.ts';
import { createToolContext } from '../../packages/testing/src/tool-context.ts';
import { startMcpHttpServer } from '../support/mcp-http-server.ts';
import { ROOM, UMA } from '../support/company.ts';
import { startMcpModernServer } from '../support/mcp-modern-server.ts';
import { caller, type McpRoom, mcpRoom } from './mcp-stage.ts';

/** Calls again whenever it is woken, as the result of the call tells it to. */
function persistent(): AgentInput {
  const calls = [{ name: 'web__deploy', args: { what: 'shop' } }];
  const script = { rules: [{ when: { step: 1 }, calls }, { reply: 'done' }] };
  return { id: 'ana', provider: 'scripted', script, tools: ['web/*'] } as AgentInput;
}

async function openQuestion(room: McpRoom) {
  const { events } = await room.troupe.events(ROOM);
  const asked = events.findLast((event) => event.kind === 'question');
  if (asked?.kind !== 'question') throw new Error('nothing was asked');
  return asked.body;
}

async function answer(room: McpRoom, content: string): Promise<void> {
  const { question } = await openQuestion(room);
  await room.troupe.command({ command: 'answer', conversation: ROOM, question, content } as never, UMA);
  await room.troupe.idle();
}

async function lastResult(room: McpRoom): Promise<string> {
  const { events } = await room.troupe.events(ROOM);
  const last = events.findLast((event) => event.kind === 'tool.result');
  return last?.kind === 'tool.result' ? last.body.content : '';
}

test('a question of a server is asked of people, and their answer goes back with the repeated call', async () => {
  await using web = await startMcpModernServer();
  await using room = await mcpRoom({ agents: [persistent()], mcpServers: { web: { url: web.url } } });
  expect(web.methods.slice(0, 2)).toEqual(['server/discover', 'tools/list']);
  expect((await room.call('ana', 'deploy')).content).toContain(
    'web/deploy is not done: its server asks people first. When you are woken with the answer, make the same call with the same arguments again',
  );
  expect(await openQuestion(room)).toMatchObject({
    text: 'The tool web/deploy asks: Are you sure?',
    choices: ['accept', 'decline'],
  });
  await answer(room, 'accept');
  expect(await openQuestion(room)).toMatchObject({
    text: 'The tool web/deploy asks: Where to?',
    choices: ['test', 'live', 'decline'],
  });
  await answer(room, 'Live');
  expect(await lastResult(room)).toBe('deployed to live');
  const args = { what: 'shop' };
  expect(web.calls).toEqual([
    { args, responses: undefined, state: undefined },
    { args, responses: { sure: { action: 'accept', content: {} } }, state: undefined },
    {
      args,
      responses: { where: { action: 'accept', content: { place: 'live' } } },
      state: 'state of the server',
    },
  ]);
});

test('a person may decline, and an answer counts for one call only', async () => {
  await using web = await startMcpModernServer();
  await using room = await mcpRoom({ agents: [persistent()], mcpServers: { web: { url: web.url } } });
  await room.call('ana', 'deploy');
  await answer(room, 'decline');
  expect(await lastResult(room)).toBe('not deployed: decline');
  expect((await room.call('ana', 'deploy once more')).content).toContain('asks people first');
});

test('an answer that does not fit is asked for again with the reason, and is not sent', async () => {
  const requestedSchema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
  const required = {
    resultType: 'input_required' as const,
    inputRequests: { n: { method: 'elicitation/create', params: { message: 'How many?', requestedSchema } } },
  };
  const sent: unknown[] = [];
  const call = createAsking('shop/order');
  const run = (answers: [question: string, content: string][], args = {}) =>
    call(
      args,
      createToolContext({
        answers: answers.map(([question, content]) => ({
          question,
          content,
          outcome: 'answered',
          author: UMA,
        })),
      }),
      (input) => {
        sent.push(input);
        return Promise.resolve(input ? { text: 'sold', isError: false } : required);
      },
    );
  const first = 'The tool shop/order asks: How many?\nAnswer with n (integer), or with "decline".';
  const second = `${first}\n[not yet understood: n is not integer]`;
  expect(await run([])).toMatchObject({ request: { kind: 'question', text: first } });
  expect(await run([[first, 'a few']])).toMatchObject({ request: { text: second } });
  // Another call, and another question, do not take the answer.
  expect(await run([[second, '3']], { other: true })).toMatchObject({ request: { text: first } });
  expect(sent).toEqual([null, null]);
  expect(await run([[second, '3']])).toEqual({ text: 'sold', isError: false });
  expect(sent.at(-1)).toEqual({ inputResponses: { n: { action: 'accept', content: { n: 3 } } } });
});

test('over an older revision a question is declined, and the model is told', async () => {
  await using web = await startMcpHttpServer(0, undefined, ['consent']);
  const ana = caller('ana', ['web/*'], { may: ['web__consent'] });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { web: { url: web.url } } });
  expect((await room.call('ana', 'may')).content.split('\n')).toEqual([
    'consent: decline',
    '[during the call its server asked a person "May I?". Over its revision of the protocol this cannot be passed on, so it was declined]',
  ]);
});

test('a server that asks for a model instead of people is refused', async () => {
  await using web = await startMcpModernServer();
  const ana = caller('ana', ['web/*'], { sample: ['web__sample'] });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { web: { url: web.url } } });
  expect((await room.call('ana', 'sample')).outcome).toBe('failed');
});

const form = (properties: object, required: string[] = []) =>
  Form.parse({ message: 'Which?', requestedSchema: { type: 'object', properties, required } });

test.each([
  [{ n: { type: 'integer' } }, '7', { action: 'accept', content: { n: 7 } }],
  [{ n: { type: 'integer' } }, '7.5', { problem: 'n is not integer' }],
  [{ sure: { type: 'boolean' } }, 'No', { action: 'accept', content: { sure: false } }],
  [{ sure: { type: 'boolean' } }, 'hm', { problem: 'sure is not yes or no' }],
  [
    { c: { type: 'string', oneOf: [{ const: '#f00', title: 'Red' }] } },
    'red',
    { action: 'accept', content: { c: '#f00' } },
  ],
  [{ a: {}, b: { type: 'number' } }, 'a: x: y\n- b: 2', { action: 'accept', content: { a: 'x: y', b: 2 } }],
  [{ a: {}, b: {} }, 'decline', { action: 'decline' }],
  [{ toString: {}, b: {} }, 'b: 1', { action: 'accept', content: { b: '1' } }],
])('the words of a person become the fields of a form: %o, %s', (properties, said, expected) => {
  expect(formAnswer(form(properties), said)).toEqual(expected);
});

test('a form of several fields says how to answer, and a required one must be there', () => {
  const several = form({ name: { type: 'string', description: 'Of the shop.' }, size: { type: 'integer' } }, [
    'name',
  ]);
  expect(questionOf('web/open', several)).toEqual({
    text: 'The tool web/open asks: Which?\n- name (string, required): Of the shop.\n- size (integer)\nAnswer with a line "name: value" for each, or with "decline".',
  });
  expect(formAnswer(several, 'size: 3')).toEqual({ problem: 'name is missing' });
});
