import { expect, test } from 'vitest';
import * as z from 'zod';
import type { AgentId, ConversationId } from '../../src/events/index.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { forever, mortal, storeAway, tapDriver, writtenBy } from '../support/engine-driver.ts';
import {
  asks,
  breaks,
  bytes,
  byStep,
  gated,
  inOrder,
  modelOf,
  says,
  type TestModel,
} from '../support/engine-models.ts';
import { ANA, openStage, turns, until } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';

/** A tool that counts its runs, and never ends while `stuck` says so. */
function counter({
  idempotent = false,
  stuck = () => false,
}: { idempotent?: boolean; stuck?: () => boolean } = {}) {
  const runs: string[] = [];
  const tool = defineTool({
    name: 'count',
    description: 'counts',
    schema: z.object({}),
    idempotent,
    async run(_, { effect }) {
      runs.push(effect);
      if (stuck()) await new Promise(() => undefined);
      return `counted ${runs.length}`;
    },
  });
  return { tool, runs };
}

/** Starts an engine, lets it work until `holds`, and kills it as kill -9 does. Returns the store it leaves. */
async function killedWhen(model: TestModel, tool: ReturnType<typeof counter>['tool'], holds: () => boolean) {
  const driver = await openDriver();
  const first = mortal(driver);
  const stage = await openStage({
    driver: first.driver,
    tools: [tool],
    agents: [{ id: 'bo', model, tools: ['count'] }],
  });
  await stage.say('c', 'go', ['bo']);
  await until('the point to kill at', holds);
  first.kill();
  return driver;
}

test('after a crash behind the first step the journal gives the same calls; the tool runs once, the model once a step', async () => {
  const { tool, runs } = counter();
  const step = asks(['count', {}]);
  const hung = modelOf(async function* ({ trace }) {
    if (trace.step === 2) await new Promise(() => undefined);
    yield* step;
  });
  const driver = await killedWhen(hung, tool, () => hung.requests.length === 2);
  const next = byStep(asks(['count', {}]), says('all counted'));
  const stage = await openStage({
    driver,
    tools: [tool],
    agents: [{ id: 'bo', model: next, tools: ['count'] }],
  });
  await stage.quiet();
  expect(runs).toHaveLength(1);
  expect(next.requests.map(({ trace }) => trace.step)).toEqual([2]);
  expect(bytes(next.requests[0])).toEqual(bytes(hung.requests[1]));
  expect((await stage.events('c')).filter(({ kind }) => kind === 'tool.result')).toMatchObject([
    { body: { outcome: 'done', content: 'counted 1' } },
  ]);
  expect(await stage.check('c')).toEqual([]);
});

test.each([
  [false, 'lost', 1],
  [true, 'done', 2],
] as const)('a crash during a call, idempotent %s: %s, %i run(s)', async (idempotent, outcome, count) => {
  let stuck = true;
  const { tool, runs } = counter({ idempotent, stuck: () => stuck });
  const driver = await killedWhen(byStep(asks(['count', {}])), tool, () => runs.length === 1);
  stuck = false;
  const model = byStep(says('never asked'), says('told'));
  const stage = await openStage({ driver, tools: [tool], agents: [{ id: 'bo', model, tools: ['count'] }] });
  await stage.quiet();
  expect(runs).toHaveLength(count);
  expect(new Set(runs).size).toBe(1);
  const results = (await stage.events('c')).filter(({ kind }) => kind === 'tool.result');
  expect(results).toMatchObject([{ body: { outcome } }]);
  expect(await stage.check('c')).toEqual([]);
});

test('a commit whose answer is lost: the reply is there, once', async () => {
  const driver = await openDriver();
  let broken = 0;
  const failing = tapDriver(driver, (op, phase, args) => {
    if (broken > 0 || phase === 'before' || !writtenBy(op, args).some((id) => id.endsWith(':reply'))) return;
    broken++;
    throw storeAway('right after the commit');
  });
  const model = inOrder(says('once'));
  const stage = await openStage({ driver: failing, agents: [{ id: 'bo', model }] });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  expect(broken).toBe(1);
  expect(model.requests).toHaveLength(1);
  expect((await stage.events('c')).filter(({ kind }) => kind === 'message')).toHaveLength(2);
  expect(await stage.check('c')).toEqual([]);
});

test('a turn that hangs every process fails visibly after too many starts', async () => {
  const driver = await openDriver();
  const limits = { maxAttempts: 3 };
  const models: TestModel[] = [];
  for (let life = 1; life <= 3; life++) {
    const model = gated(says('x'), 1);
    models.push(model);
    const process = mortal(driver);
    const stage = await openStage({ driver: process.driver, agents: [{ id: 'bo', model }], limits });
    if (life === 1) await stage.say('c', 'go', ['bo']);
    await model.reached();
    expect((await stage.troupe.actors('c'))[0]).toMatchObject({ attempt: life });
    process.kill();
  }
  const model = inOrder(says('fresh'));
  const stage = await openStage({ driver, agents: [{ id: 'bo', model }], limits });
  await stage.quiet();
  expect(model.requests).toHaveLength(0);
  const failed = (await stage.events('c')).find(({ kind }) => kind === 'turn.failed');
  expect(failed).toMatchObject({ body: { code: 'poison', covers: [1] } });
  await stage.say('c', 'something else', ['bo']);
  await stage.quiet();
  expect(model.requests).toHaveLength(1);
  expect(await stage.check('c')).toEqual([]);
});

test('an actor whose log ends every process that reads it fails visibly, and the others continue', async () => {
  const driver = await openDriver();
  const limits = { maxAttempts: 3 };
  const agents = () => [
    { id: 'bo', model: inOrder(says('at last')) },
    { id: 'cy', model: inOrder(says('fine')) },
  ];
  for (let life = 1; life <= 4; life++) {
    const reached = Promise.withResolvers<void>();
    const process = mortal(driver);
    // The process crashes on the log of this conversation, once it holds the lease.
    let isHeld = false;
    const dying = tapDriver(process.driver, (op, phase, [key]) => {
      const { conversation } = key as { conversation?: string };
      if (conversation !== 'c') return undefined;
      if (op === 'acquire' && phase === 'after') isHeld = true;
      // A process that was present when the message was posted need not read it, and crashes before it pins anything.
      const isReading = op === (life === 1 ? 'step' : 'readEvents');
      if (!isReading || phase !== 'before' || !isHeld) return undefined;
      process.kill();
      reached.resolve();
      return forever();
    });
    const stage = await openStage({ driver: dying, agents: agents(), limits });
    if (life === 1) void stage.say('c', 'go', ['bo']);
    await reached.promise;
  }
  const stage = await openStage({ driver, agents: agents(), limits });
  await stage.say('d', 'and you?', ['cy']);
  await stage.quiet();
  const notices = (await stage.events('c')).filter(({ kind }) => kind === 'error');
  expect(notices).toMatchObject([{ body: { code: 'poison' } }]);
  expect((await stage.troupe.actors('c'))[0]).toMatchObject({ status: 'failed' });
  expect((await stage.events('d')).some(({ kind }) => kind === 'turn.done')).toBe(true);
  await stage.troupe.command(
    { command: 'resume', conversation: 'c' as ConversationId, agent: 'bo' as AgentId },
    ANA,
  );
  await stage.quiet();
  expect((await stage.events('c')).some(({ kind }) => kind === 'turn.done')).toBe(true);
});

test('a turn given up still records the calls that it made', async () => {
  const { tool, runs } = counter();
  const hung = modelOf(async function* ({ trace }) {
    if (trace.step === 2) await new Promise(() => undefined);
    yield* asks(['count', {}]);
  });
  const driver = await killedWhen(hung, tool, () => hung.requests.length === 2);
  const model = inOrder(says('never'));
  const agents = [{ id: 'bo', model, tools: ['count'] }];
  const stage = await openStage({ driver, tools: [tool], agents, limits: { maxAttempts: 1 } });
  await stage.quiet();
  expect(runs).toHaveLength(1);
  const kinds = (await stage.events('c')).filter(({ turn }) => turn !== undefined).map(({ kind }) => kind);
  expect(kinds).toEqual(['turn.started', 'step', 'tool.result', 'turn.failed']);
  expect(await stage.check('c')).toEqual([]);
});

test('a shutdown during a turn finishes the step, counts no attempt, and the restart requests only the next step', async () => {
  const driver = await openDriver();
  const { tool, runs } = counter();
  const first = gated(asks(['count', {}]), 2);
  const stage = await openStage({
    driver,
    tools: [tool],
    agents: [{ id: 'bo', model: first, tools: ['count'] }],
  });
  await stage.say('c', 'go', ['bo']);
  await first.reached();
  const closed = stage.engine.stop();
  first.open();
  await closed;
  expect(first.requests).toHaveLength(1);
  expect(await stage.actor('c', 'bo')).toMatchObject({ owner: '', until: 0, turn: { attempt: 0 } });

  const second = byStep(asks(['count', {}]), says('done'));
  const agents = [{ id: 'bo', model: second, tools: ['count'] }];
  const again = await openStage({ driver, tools: [tool], agents, limits: { maxAttempts: 1 } });
  await again.quiet();
  expect(runs).toHaveLength(1);
  expect(second.requests.map(({ trace }) => trace.step)).toEqual([2]);
  expect((await again.events('c')).at(-1)?.kind).toBe('turn.done');
  expect(await again.check('c')).toEqual([]);
});

test('a shutdown does not wait for a long backoff, and a failure in the next process is reported beside the first', async () => {
  const driver = await openDriver();
  const first = inOrder(breaks('provider_overloaded', 'so far'));
  const stage = await openStage({ driver, agents: [{ id: 'bo', model: first }] });
  await stage.say('c', 'go', ['bo']);
  await until('the error is logged', async () =>
    (await stage.events('c')).some(({ kind }) => kind === 'error'),
  );
  await turns(5);
  await stage.engine.stop();

  const second = inOrder(breaks('provider_rate_limited', 'other'), says('well'));
  const again = await openStage({ driver, agents: [{ id: 'bo', model: second }] });
  await again.quiet();
  const errors = (await again.events('c')).filter(({ kind }) => kind === 'error');
  expect(errors).toMatchObject([
    { body: { code: 'provider_overloaded', partial: 'so far' } },
    { body: { code: 'provider_rate_limited', partial: 'other' } },
  ]);
  expect((await again.events('c')).at(-1)?.kind).toBe('turn.done');
  expect(await again.check('c')).toEqual([]);
});
