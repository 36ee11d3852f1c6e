import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AgentCard, Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from '@a2a-js/sdk';
import { AgentEvent, type AgentExecutor, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createA2a } from '../src/a2a/a2a.ts';
import type { ModelEvent } from '../../../src/providers/provider.ts';
import { collectEvents, sampleRequest, textOf } from '../../testing/src/provider-conformance.ts';
import { openStage, type Stage } from '../../doors/test/stage.ts';
import { UMA } from '../../../test/support/company.ts';
import { openTroupe } from '../../../test/support/mode.ts';
import { user } from '../../../test/providers/sent.ts';

/** An agent behind the server of the protocol's own SDK. The user's text tells it what to do. */
const executor: AgentExecutor = {
  async execute({ taskId, contextId, userMessage, task }, bus) {
    const ids = { taskId, contextId };
    const { content } = userMessage.parts.at(-1)!;
    const words = content?.$case === 'text' ? content.value : '';
    const status = (state: string, text?: string) => ({
      state: `TASK_STATE_${state}`,
      ...(text !== undefined && {
        message: { messageId: `${taskId}-${state}`, role: 'ROLE_AGENT', parts: [{ text }] },
      }),
    });
    const tell = (state: string, text?: string) =>
      bus.publish(
        AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ ...ids, status: status(state, text) })),
      );
    const piece = (artifactId: string, text: string, append = false) => {
      const artifact = { artifactId, parts: [{ text }] };
      bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON({ ...ids, artifact, append })));
    };
    const begin = () => {
      const begun = Task.fromJSON({ id: taskId, contextId, status: status('WORKING') });
      bus.publish(AgentEvent.task(task ? { ...task, status: begun.status } : begun));
    };

    if (words === 'greet') {
      const message = { messageId: 'm1', contextId, role: 'ROLE_AGENT', parts: [{ text: 'Good day.' }] };
      bus.publish(AgentEvent.message(Message.fromJSON(message)));
      return;
    }
    begin();
    if (words === 'throw') throw new Error('out of paper');
    if (words === 'fail') tell('FAILED', 'the printer is on fire');
    else if (task) {
      piece('order', 'One shirt, ');
      piece('order', words, true);
      tell('COMPLETED');
    } else if (words === 'shirt') {
      piece('list', 'We have S and L.');
      tell('INPUT_REQUIRED', 'Which size?');
    } else {
      tell('WORKING', 'I write.');
      piece('poem', 'Roses ');
      piece('poem', 'are red.', true);
      piece('title', 'Roses');
      tell('COMPLETED');
    }
  },
  async cancelTask() {},
};

const app = express();
const server = createServer(app);
let url = '';
let stage: Stage;

function serve(path: string, streaming: boolean): void {
  const card = AgentCard.fromJSON({
    name: 'Clerk',
    version: '1',
    capabilities: { streaming },
    supportedInterfaces: [{ url: `${url}${path}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  });
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
  const userBuilder = UserBuilder.noAuthentication;
  app.use(`${path}/.well-known/agent-card.json`, agentCardHandler({ agentCardProvider: requestHandler }));
  app.use(`${path}/rpc`, jsonRpcHandler({ requestHandler, userBuilder }));
}

beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  serve('/streams', true);
  serve('/plain', false);
  stage = await openStage(['surveyor', 'asker', 'broken'], {
    agents: { asker: { tools: ['ask'] } },
    answers: {
      surveyor: () => ({ text: 'Plot 7 is free.' }),
      asker: ({ body }) =>
        JSON.stringify(body).includes('size L')
          ? { text: 'L it is.' }
          : { calls: [{ name: 'ask', args: '{"question":"Which size?"}' }] },
      broken: () => ({ raw: { status: 401, body: '{}' } }),
    },
  });
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await stage[Symbol.asyncDispose]();
});

const START = { session: { kind: 'start' } } as const;
const ask = (at: string, words: string) =>
  collectEvents(createA2a({ url: at }), sampleRequest({ ...START, messages: [user(words)] }));

/** The next message of the session that these events opened. */
function answer(at: string, events: readonly ModelEvent[], words: string): Promise<readonly ModelEvent[]> {
  const done = events.at(-1);
  if (done?.type !== 'done' || !done.session) throw new Error(`no mark: ${JSON.stringify(done)}`);
  const session = { kind: 'resume', mark: done.session } as const;
  return collectEvents(createA2a({ url: at }), sampleRequest({ session, messages: [user(words)] }));
}

test.each(['/streams', '/plain'])('an agent of the SDK at %s replies with a message', async (path) => {
  expect(textOf(await ask(`${url}${path}`, 'greet'))).toBe('Good day.');
});

test.each(['/streams', '/plain'])(
  'the artifacts of an agent of the SDK at %s are the reply',
  async (path) => {
    expect(textOf(await ask(`${url}${path}`, 'poem'))).toBe('Roses are red.\n\nRoses');
  },
);

test('artifacts of an agent of the SDK come in pieces, and its state is progress', async () => {
  const events = await ask(`${url}/streams`, 'poem');
  expect(events.filter(({ type }) => type === 'text' || type === 'thinking')).toEqual([
    { type: 'thinking', delta: 'I write.\n' },
    { type: 'text', delta: 'Roses ' },
    { type: 'text', delta: 'are red.' },
    { type: 'text', delta: '\n\nRoses' },
  ]);
});

test.each(['/streams', '/plain'])(
  'a question of an agent of the SDK at %s is answered in its task, and nothing is said twice',
  async (path) => {
    const first = await ask(`${url}${path}`, 'shirt');
    expect(textOf(first)).toBe('We have S and L.\n\nWhich size?');
    expect(textOf(await answer(`${url}${path}`, first, 'size L'))).toBe('One shirt, size L');
  },
);

test.each([
  ['fail', 'the printer is on fire'],
  ['throw', 'out of paper'],
])('a task of an agent of the SDK that ends with %s is a failure that says why', async (words, why) => {
  expect((await ask(`${url}/streams`, words)).at(-1)).toMatchObject({
    type: 'failed',
    error: { code: 'provider_failed', message: expect.stringContaining(why) as string },
  });
});

test('an agent of a troupe asks over A2A, and is answered in the same task', async () => {
  const at = `${stage.url}/api/a2a/asker`;
  const first = await ask(at, 'A shirt.');
  expect(textOf(first)).toContain('Which size?');
  expect(textOf(await answer(at, first, 'size L'))).toBe('L it is.');
});

test('a failed turn of an agent of a troupe is a failure over A2A', async () => {
  expect((await ask(`${stage.url}/api/a2a/broken`, 'Go.')).at(-1)).toMatchObject({
    type: 'failed',
    error: { code: 'provider_failed', message: expect.stringContaining('@broken: ') as string },
  });
});

test('an agent of one troupe is an agent of another', async () => {
  const remote = (id: string) => ({ id, provider: 'a2a', url: `${stage.url}/api/a2a/${id}` }) as const;
  await using troupe = await openTroupe({ agents: [remote('surveyor')] });
  const say = async (to: string, content: string) => {
    await troupe.send('office', { author: UMA, to: [to], content });
    await troupe.idle();
  };
  await say('surveyor', 'Is plot 7 free?');
  await say('surveyor', 'Sure?');
  const { events } = await troupe.events('office');
  const replies = events.filter(({ kind, author }) => kind === 'message' && author.id === 'surveyor');
  expect(replies.map(({ body }) => body)).toMatchObject([
    { content: 'Plot 7 is free.' },
    { content: 'Plot 7 is free.' },
  ]);
  expect(JSON.stringify(stage.raw('surveyor'))).toMatch(/Is plot 7 free\?.*Sure\?/s);
});
