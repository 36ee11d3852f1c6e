import fc from 'fast-check';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { afterStep, NO_CALLS } from '../../src/actors/turn/repeated-calls.ts';
import type { Event, EventOf } from '../../src/events/index.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { asks, modelOf, says, type TestModel } from '../support/engine-models.ts';
import { openStage, type Stage } from '../support/engine-stage.ts';

const adds = defineTool({
  name: 'adds',
  description: 'a',
  schema: z.object({ a: z.number(), b: z.number() }),
  run: ({ a, b }) => String(a + b),
});

/** Returns something different each time. */
function clockTool() {
  let time = 0;
  return defineTool({
    name: 'time',
    description: 't',
    schema: z.object({}),
    run: () => String((time += 1)),
  });
}

async function playWith(model: TestModel, maxRepeats = 4): Promise<Stage> {
  const stage = await openStage({
    tools: [adds, clockTool()],
    limits: { maxRepeats },
    agents: [{ id: 'bo', model, tools: ['adds', 'time'] }],
  });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  return stage;
}

async function resultsOf(stage: Stage): Promise<string[]> {
  return of(await stage.events('c'), 'tool.result').map(({ body }) => body.content);
}

function of<K extends Event['kind']>(events: readonly Event[], kind: K): EventOf<K>[] {
  return events.filter((event) => event.kind === kind) as EventOf<K>[];
}

test('an agent that repeats the same call is warned, and then a named guard ends its turn', async () => {
  const stage = await playWith(
    modelOf(async function* () {
      yield* asks(['adds', { a: 1, b: 1 }]);
    }),
  );
  const events = await stage.events('c');
  const results = await resultsOf(stage);
  // The first result is new, the next two repeats carry a warning, and the turn ends with the fourth useless step.
  expect(results.map((text) => text.includes('[Troupe: '))).toEqual([false, false, true, true, false]);
  expect(results[2]).toMatch(/^2\n\n\[Troupe: the last 2 steps brought nothing .* after 4 such steps/);
  const [stop, ...more] = of(events, 'guard.stopped');
  expect(more).toEqual([]);
  expect(stop?.body).toMatchObject({
    guard: 'repeats',
    message: expect.stringContaining('limits.maxRepeats 4') as string,
  });
  expect(of(events, 'turn.failed')[0]?.body).toMatchObject({ code: 'guard_stopped' });
  expect(await stage.check('c')).toEqual([]);
});

test('invented ids, one after the other, count as one repeated failure', async () => {
  let id = 0;
  const stage = await playWith(
    modelOf(async function* () {
      yield* asks(['read_artifact', { id: `@artifact/made-up-${(id += 1)}` }]);
    }),
  );
  expect(of(await stage.events('c'), 'guard.stopped')[0]?.body.guard).toBe('repeats');
  expect(id).toBe(5);
});

test('failures with different messages are no repetition, even if the differences stand in quotes', async () => {
  let tries = 0;
  const build = defineTool({
    name: 'build',
    description: 'b',
    schema: z.object({ part: z.string() }),
    run: () => Promise.reject(new Error(JSON.stringify({ error: `line ${(tries += 1)}` }))),
  });
  const stage = await openStage({
    tools: [build],
    limits: { maxRepeats: 2 },
    agents: [
      {
        id: 'bo',
        model: modelOf(async function* () {
          yield* tries < 6 ? asks(['build', { part: 'mole' }]) : says('I give up');
        }),
        tools: ['build'],
      },
    ],
  });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  expect(of(await stage.events('c'), 'guard.stopped')).toEqual([]);
});

test('an agent that heeds the warning ends its turn with an answer', async () => {
  const stage = await playWith(
    modelOf(async function* ({ messages }) {
      const isTold = JSON.stringify(messages).includes('brought nothing that this turn');
      yield* isTold ? says('it is 2') : asks(['adds', { a: 1, b: 1 }]);
    }),
  );
  const events = await stage.events('c');
  expect(of(events, 'guard.stopped')).toEqual([]);
  expect(events.at(-1)?.kind).toBe('turn.done');
});

test('a repeated call with a new result each time is no repetition', async () => {
  let steps = 0;
  const stage = await playWith(
    modelOf(async function* () {
      steps += 1;
      yield* steps > 12 ? says('done') : asks(['time', {}]);
    }),
  );
  const events = await stage.events('c');
  expect(of(events, 'guard.stopped')).toEqual([]);
  expect((await resultsOf(stage)).join()).not.toContain('[Troupe');
  expect(events.at(-1)?.kind).toBe('turn.done');
});

test('two alternating calls are as stale as one, and one new result restarts the count', async () => {
  const plan = [1, 2, 1, 2, 1, 3, 1, 2, 1];
  let step = 0;
  const stage = await playWith(
    modelOf(async function* () {
      const a = plan[(step += 1) - 1];
      yield* a === undefined ? says('done') : asks(['adds', { a, b: 0 }]);
    }),
  );
  const told = (await resultsOf(stage)).map((text) => text.includes('[Troupe: '));
  expect(told).toEqual([false, false, false, true, true, false, false, true, true]);
  expect(of(await stage.events('c'), 'guard.stopped')).toEqual([]);
});

test('a step is stale exactly if each of its results was seen before, for any series of calls', () => {
  const call = fc.record({
    name: fc.constantFrom('a', 'b'),
    args: fc.constantFrom('{}', '{"x":1}'),
    content: fc.constantFrom('0', '1'),
  });
  fc.assert(
    fc.property(fc.array(fc.array(call, { minLength: 1, maxLength: 3 }), { maxLength: 20 }), (steps) => {
      const seen = new Set<string>();
      let stale = 0;
      let now = NO_CALLS;
      for (const step of steps) {
        const keys = step.map(({ name, args, content }) => `${name} ${args} ${content}`);
        stale = keys.every((key) => seen.has(key)) ? stale + 1 : 0;
        for (const key of keys) seen.add(key);
        now = afterStep(
          now,
          step.map(({ name, args }, index) => ({ id: `${index}`, name, args })),
          step.map(({ content }) => ({ outcome: 'done', content })),
        );
        expect(now.stale).toBe(stale);
      }
    }),
  );
});
