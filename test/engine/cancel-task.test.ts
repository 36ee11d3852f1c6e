import { expect, test } from 'vitest';
import type { AgentId } from '../../src/events/index.ts';
import { defineTool } from '../../src/tools/tool.ts';
import * as z from 'zod';
import { bomb, ENOUGH, everything, given, stillOpen } from '../support/bombs.ts';
import { asks, byStep, gated, inOrder, modelOf, says, type TestModel } from '../support/engine-models.ts';
import { ANA, logOf, openStage, type Stage, until } from '../support/engine-stage.ts';

const delegatesTo = (to: string) => byStep(asks(['delegate', { to, task: `for ${to}` }]), says('noted'));

/** bo delegates to cy, and cy to di. From then on cy's thread receives nothing, as if its wakes were lost. */
async function chainOf(
  di: TestModel,
  tools: NonNullable<Parameters<typeof openStage>[0]['tools']> = [],
  notWoken: readonly string[] = [],
) {
  const deaf = new Set<string>(notWoken);
  const stage = await openStage({
    tools,
    agents: [
      { id: 'bo', tools: ['delegate'], model: delegatesTo('cy') },
      { id: 'cy', tools: ['delegate'], model: delegatesTo('di') },
      { id: 'di', tools: tools.map(({ name }) => name), model: di },
    ],
    // Disables the sweep, which would find the lost wakes.
    limits: { sweepMs: 1_000_000_000 },
    router: (router) => ({
      ...router,
      wake: (address, options) =>
        deaf.has(address.agent) ? Promise.resolve() : router.wake(address, options),
    }),
  });
  await stage.say('c', 'go', ['bo']);
  return { stage, deafen: () => void deaf.add('cy'), hear: () => deaf.clear() };
}

async function cancel(stage: Stage, task = 'd-'): Promise<void> {
  await stage.troupe.command({ command: 'cancelTask', conversation: logOf('c').conversation, task }, ANA);
}

async function threadOf(stage: Stage, agent: string): Promise<string> {
  const all = given(await everything(stage));
  return all.find(({ body }) => body.assignee === agent)?.body.thread ?? '';
}

test('a turn two tasks below a cancelled task calls its model no more, although no agent between has been notified', async () => {
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  const wait = defineTool({
    name: 'wait',
    description: 'waits',
    schema: z.object({}),
    async run() {
      reached.resolve();
      await opened.promise;
      return 'waited';
    },
  });
  const di = byStep(asks(['wait', {}]), says('too late'));
  const { stage, deafen } = await chainOf(di, [wait]);
  await reached.promise;
  deafen();
  await cancel(stage);
  opened.resolve();
  await stage.quiet();
  expect(di.requests).toHaveLength(1);
  const thread = await stage.events(await threadOf(stage, 'di'));
  expect(thread.filter(({ kind }) => kind === 'turn.aborted')).toMatchObject([{ body: { by: 'cancelled' } }]);
  expect(thread.some(({ kind }) => kind === 'turn.done')).toBe(false);
});

test('an answer being written two tasks below is aborted at once', async () => {
  const di = gated(says('half ', 'a thought'), 2);
  const { stage, deafen } = await chainOf(di);
  await di.reached();
  deafen();
  await cancel(stage);
  await until('the turn has ended', async () =>
    (await stage.events(await threadOf(stage, 'di'))).some(({ kind }) => kind === 'turn.aborted'),
  );
  await stage.quiet();
  expect(di.requests).toHaveLength(1);
});

test('a task that has not begun when a task above it is cancelled never begins', async () => {
  const di = inOrder(says('too late'));
  const { stage, deafen, hear } = await chainOf(di, [], ['di']);
  await until('di is given its task', async () => (await threadOf(stage, 'di')) !== '');
  const thread = await threadOf(stage, 'di');
  await stage.quiet();
  deafen();
  await cancel(stage);
  hear();
  await stage.deps.router.wake({ ...logOf(thread), agent: 'di' as AgentId });
  await stage.quiet();
  // The owner has delegated the task again meanwhile, into another thread.
  expect(di.requests.filter(({ trace }) => trace.conversation === thread)).toEqual([]);
  expect((await stage.events(thread)).some(({ kind }) => kind === 'turn.done')).toBe(true);
});

test('messages of people in a cancelled thread are answered', async () => {
  const cy = inOrder(asks(['delegate', { to: 'di', task: 'for di' }]), says('heard'));
  const di = gated(says('half ', 'a thought'), 2);
  const stage = await openStage({
    agents: [
      { id: 'bo', tools: ['delegate'], model: delegatesTo('cy') },
      { id: 'cy', tools: ['delegate'], model: cy },
      { id: 'di', model: di },
    ],
  });
  await stage.say('c', 'go', ['bo']);
  await di.reached();
  const thread = await threadOf(stage, 'cy');
  await cancel(stage);
  await stage.quiet();
  await stage.say(thread, 'and you?', ['cy']);
  await stage.quiet();
  const last = (await stage.events(thread)).findLast(({ kind }) => kind === 'message');
  expect(last).toMatchObject({ author: { id: 'cy' }, body: { content: 'heard' } });
  expect(await stage.check(thread)).toEqual([]);
});

test('all: everything that came of a conversation ends for good, its own agents are not called, and people are answered again', async () => {
  const model = bomb(4);
  const stage = await openStage({
    agents: [{ id: 'bo', tools: ['delegate'], model }],
    limits: {
      maxDepth: 50,
      maxHops: 10_000,
      maxTreeTasks: 10_000,
      maxTreeOpen: 10_000,
      maxAgentTurns: 10_000,
    },
    concurrency: 4,
  });
  await stage.say('c', 'begin', ['bo']);
  await until('it has grown', () => model.requests.length >= 40);
  await cancel(stage, 'all');
  const asked = model.requests.length;
  await stage.quiet();
  expect(model.requests).toHaveLength(asked);
  const events = await everything(stage);
  expect(stillOpen(events)).toEqual([]);
  for (const { conversation } of given(events)) {
    await stage.deps.router.wake({ ...logOf(conversation), agent: 'bo' as AgentId });
  }
  await stage.quiet();
  expect(model.requests).toHaveLength(asked);
  // A repeated cancellation changes nothing.
  await cancel(stage, 'all');
  await stage.quiet();
  expect(model.requests).toHaveLength(asked);
  for (const id of new Set(events.map(({ conversation }) => conversation)))
    expect(await stage.check(id), id).toEqual([]);

  await stage.say('c', ENOUGH, ['bo']);
  await stage.quiet();
  expect((await stage.events('c')).at(-2)).toMatchObject({ body: { content: 'as you wish' } });
});

test('only people cancel everything, and not from a thread', async () => {
  const { stage } = await chainOf(inOrder(says('done')));
  await stage.quiet();
  const thread = await threadOf(stage, 'cy');
  const command = { command: 'cancelTask', task: 'all' } as const;
  const system = { kind: 'system', id: 'app', name: 'app' } as const;
  const inRoot = { ...command, conversation: logOf('c').conversation };
  await expect(stage.troupe.command(inRoot, system)).rejects.toMatchObject({ code: 'command_refused' });
  const inThread = { ...command, conversation: logOf(thread).conversation };
  await expect(stage.troupe.command(inThread, ANA)).rejects.toMatchObject({ code: 'command_refused' });
});

test('the remaining work of a deleted conversation does nothing', async () => {
  const di = inOrder(says('too late'));
  const { stage, deafen } = await chainOf(di);
  await stage.quiet();
  deafen();
  const thread = await threadOf(stage, 'di');
  const asked = di.requests.length;
  await stage.store.deleteConversation(logOf('c'));
  // A message of an agent that arrives late.
  const message = {
    author: { kind: 'agent', id: 'cy', name: 'cy' },
    content: 'more of it',
    to: ['di'],
  } as const;
  await stage.troupe.send(thread, message);
  await stage.quiet();
  expect(di.requests).toHaveLength(asked);
});

test('a failed model call is not retried if its task was cancelled meanwhile', async () => {
  let calls = 0;
  const di = modelOf(async function* () {
    calls += 1;
    if (calls === 1) {
      deafen();
      await cancel(stage);
      yield* [
        { type: 'start' } as const,
        { type: 'failed', error: { code: 'provider_overloaded', message: 'busy' } } as const,
      ];
    } else yield* says('too late');
  });
  const { stage, deafen } = await chainOf(di);
  await stage.quiet();
  expect(calls).toBe(1);
});
