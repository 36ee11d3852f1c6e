import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/tools/tool.ts';
import { storeAway, tapDriver } from '../support/engine-driver.ts';
import { asks, byStep, inOrder, modelOf, says } from '../support/engine-models.ts';
import { openStage, turns, until } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';

const throws = defineTool({
  name: 'throws',
  description: 't',
  schema: z.object({}),
  run: () => {
    throw new Error('broken pipe');
  },
});
const hangs = defineTool({
  name: 'hangs',
  description: 'h',
  schema: z.object({}),
  timeoutMs: 1_000,
  run: () => new Promise<string>(() => undefined),
});
const adds = defineTool({
  name: 'adds',
  description: 'a',
  schema: z.object({ a: z.number(), b: z.number() }),
  run: ({ a, b }) => String(a + b),
});
const TOOLS = [throws, hangs, adds];

test.each<[string, [string, unknown], RegExp]>([
  ['a tool that throws', ['throws', {}], /broken pipe/],
  ['a tool that never ends', ['hangs', {}], /longer than 1000 ms/],
  ['a tool nobody has', ['subtracts', {}], /no tool "subtracts".*adds/],
  ['arguments that do not fit', ['adds', { a: 'one', b: 2 }], /do not fit/],
  ['arguments that are not JSON', ['adds', '{"a": 1,'], /not valid JSON/],
])('%s gives one failed result, and the agent continues', async (_, call, message) => {
  const model = byStep(asks(call, ['adds', { a: 1, b: 2 }]), says('I see'));
  const stage = await openStage({
    tools: TOOLS,
    agents: [{ id: 'bo', model, tools: TOOLS.map(({ name }) => name) }],
  });
  await stage.say('c', 'go', ['bo']);
  await until('the model is asked', () => model.requests.length > 0);
  await stage.clock.advance(2_000);
  await stage.quiet();
  const results = (await stage.events('c')).filter(({ kind }) => kind === 'tool.result');
  expect(results).toMatchObject([
    { body: { outcome: 'failed', content: expect.stringMatching(message) as string } },
    { body: { outcome: 'done', content: '3' } },
  ]);
  expect((await stage.events('c')).at(-1)?.kind).toBe('turn.done');
  expect(await stage.check('c')).toEqual([]);
});

test('a turn that never stops calling ends visibly at the step limit, with every call answered', async () => {
  const model = modelOf(async function* () {
    yield* asks(['adds', { a: 1, b: 1 }]);
  });
  const agents = [{ id: 'bo', model, tools: ['adds'] }];
  const stage = await openStage({ tools: TOOLS, agents, limits: { maxSteps: 4 } });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  expect(model.requests).toHaveLength(4);
  expect((await stage.events('c')).at(-1)).toMatchObject({
    kind: 'turn.failed',
    body: { code: 'step_limit' },
  });
  expect(await stage.check('c')).toEqual([]);
});

test('a handoff ping-pong is stopped at the hop limit, visibly, and ends with an answer', async () => {
  const pingPong = (to: string) =>
    modelOf(async function* ({ trace }) {
      yield* trace.step === 1 ? asks(['handoff', { to, goal: 'you do it' }]) : says('then I answer myself');
    });
  const stage = await openStage({
    agents: [
      { id: 'bo', model: pingPong('cy'), tools: ['handoff'] },
      { id: 'cy', model: pingPong('bo'), tools: ['handoff'] },
    ],
    limits: { maxHops: 6 },
  });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  const events = await stage.events('c');
  expect(events.filter(({ kind }) => kind === 'handoff').map(({ hop }) => hop)).toEqual([1, 2, 3, 4, 5, 6]);
  expect(events.filter(({ kind }) => kind === 'tool.result').at(-1)).toMatchObject({
    body: { outcome: 'failed', content: expect.stringContaining('at most 6') as string },
  });
  expect(events.at(-1)?.kind).toBe('turn.done');
  expect(await stage.check('c')).toEqual([]);
});

test('a handoff to an unknown agent is refused with the nearest name, and the agent continues', async () => {
  const model = byStep(asks(['handoff', { to: 'cyy', goal: 'x' }]), says('alone then'));
  const stage = await openStage({
    agents: [
      { id: 'bo', model, tools: ['handoff'] },
      { id: 'cy', model: inOrder(says('-')) },
    ],
  });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  const result = (await stage.events('c')).find(({ kind }) => kind === 'tool.result');
  expect(result).toMatchObject({
    body: { outcome: 'failed', content: expect.stringContaining('"cy"') as string },
  });
  expect(await stage.check('c')).toEqual([]);
});

test('a part read of an artifact is shown whole, however small the previews are', async () => {
  const long = 'x'.repeat(30_000);
  const prints = defineTool({ name: 'prints', description: 'p', schema: z.object({}), run: () => long });
  const read = { id: '@artifact/c:bo:1.0.0', unit: 'bytes', limit: 12_000 };
  const model = byStep(asks(['prints', {}]), asks(['read_artifact', read]), says('read'));
  const agents = [{ id: 'bo', model, tools: ['prints'] }];
  const stage = await openStage({ tools: [prints], agents, limits: { previewBytes: 4_096 } });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  const [printed, shown] = (await stage.events('c')).filter(({ kind }) => kind === 'tool.result');
  expect(printed).toMatchObject({ body: { artifact: 'c:bo:1.0.0' } });
  expect(shown?.body).toMatchObject({ content: expect.stringContaining('x'.repeat(12_000)) as string });
  expect(shown?.body).not.toHaveProperty('artifact');
});

test('an actor is not released while one of its calls runs, even if another could not be recorded', async () => {
  let away = true;
  const driver = tapDriver(await openDriver(), (op, phase, [key]) => {
    const { namespace, key: name = '' } = key as { namespace?: string; key?: string };
    if (op !== 'putOnce' || phase !== 'before' || namespace !== 'effect' || !name.endsWith('.0') || !away)
      return;
    away = false;
    throw storeAway('for the first call');
  });
  const ended = Promise.withResolvers<string>();
  let runs = 0;
  const slow = defineTool({
    name: 'slow',
    description: 's',
    schema: z.object({}),
    run: () => ((runs += 1), ended.promise),
  });
  const model = byStep(asks(['adds', { a: 1, b: 2 }], ['slow', {}]), says('done'));
  const stage = await openStage({
    driver,
    tools: [slow, ...TOOLS],
    agents: [{ id: 'bo', model, tools: ['slow', 'adds'] }],
  });
  await stage.say('c', 'go', ['bo']);
  await until('the slow tool runs', () => runs === 1);
  expect(away).toBe(false);
  await stage.clock.advance(5_000);
  await turns(50);
  expect(await stage.actor('c', 'bo')).toMatchObject({ fence: 1 });
  ended.resolve('slow result');
  await stage.quiet();
  const results = (await stage.events('c')).filter(({ kind }) => kind === 'tool.result');
  expect(results).toMatchObject([{ body: { content: '3' } }, { body: { content: 'slow result' } }]);
  expect(runs).toBe(1);
});
