import fc from 'fast-check';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { afterStep, NO_CALLS } from '../../src/actors/attempt/repeated-calls.ts';
import type { Event, EventOf } from '../../src/events/index.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { asks, modelOf, says, type TestModel } from '../support/engine-models.ts';
import { openStage, type Stage } from '../support/engine-stage.ts';
import { type Play, playKilledAt } from '../support/killed-play.ts';
import { withoutTimes } from '../support/without-times.ts';

const adds = defineTool({
  name: 'adds',
  description: 'a',
  schema: z.object({ a: z.number(), b: z.number() }),
  idempotent: true,
  run: ({ a, b }) => String(a + b),
});

/** Finds nothing, and says what. */
const finds = defineTool({
  name: 'finds',
  description: 'f',
  schema: z.object({
    number: z.number().optional(),
    names: z.array(z.object({ name: z.string() })).optional(),
  }),
  idempotent: true,
  run: ({ number, names = [] }) =>
    Promise.reject(new Error(`there is no ${number ?? names.map(({ name }) => name).join()}`)),
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
    message: expect.stringContaining('at most 4') as string,
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

test.each<[string, (step: number) => [name: string, args: unknown]]>([
  ['in another order and spacing', (n) => ['adds', n % 2 ? '{"a":1,"b":2}' : '{ "b": 2, "a": 1 }']],
  ['for a number that is not there', (n) => ['finds', { number: n }]],
  ['for a name deep in the arguments', (n) => ['finds', { names: [{ name: `mole-${n}` }] }]],
  ['of tools that do not exist', (n) => [`find_${n}`, {}]],
])('a call repeated %s is a repetition', async (_, callAt) => {
  let step = 0;
  const stage = await openStage({
    tools: [adds, finds],
    limits: { maxRepeats: 4 },
    agents: [
      {
        id: 'bo',
        model: modelOf(async function* () {
          yield* asks(callAt((step += 1)));
        }),
        tools: ['adds', 'finds'],
      },
    ],
  });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  expect(of(await stage.events('c'), 'guard.stopped')[0]?.body.guard).toBe('repeats');
  expect(step).toBe(5);
});

test('reading further and further beyond the end of an output is a repetition', async () => {
  let step = 0;
  const stage = await playWith(
    modelOf(async function* () {
      step += 1;
      yield* step === 1
        ? asks(['adds', { a: 1, b: 1 }])
        : asks(['read_artifact', { id: 'c:bo:1:result:0.0', offset: step * 100 }]);
    }),
  );
  expect((await resultsOf(stage))[1]).toContain('nothing at line 200: the artifact has 1 lines');
  expect(of(await stage.events('c'), 'guard.stopped')[0]?.body.guard).toBe('repeats');
  expect(step).toBe(6);
});

test('outputs that differ only where their previews are cut are no repetition', async () => {
  let polls = 0;
  const poll = defineTool({
    name: 'poll',
    description: 'p',
    schema: z.object({}),
    run: () => `${'build output\n'.repeat(1_000)}${(polls += 1)}\n${'build output\n'.repeat(1_000)}`,
  });
  const stage = await openStage({
    tools: [poll],
    limits: { maxRepeats: 2, previewBytes: 512 },
    agents: [
      {
        id: 'bo',
        model: modelOf(async function* () {
          yield* polls < 6 ? asks(['poll', {}]) : says('it is built');
        }),
        tools: ['poll'],
      },
    ],
  });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  const texts = (await resultsOf(stage)).map((text) => text.replace(/@artifact\/\S+/g, ''));
  expect(new Set(texts).size).toBe(1);
  expect(of(await stage.events('c'), 'guard.stopped')).toEqual([]);
});

test('a process that dies at any point changes neither the notes nor the end of the turn', async () => {
  const play: Play = {
    options: {
      tools: [adds, finds],
      limits: { maxRepeats: 3 },
      agents: [
        {
          id: 'bo',
          model: modelOf(async function* ({ trace }) {
            yield* asks(trace.step === 1 ? ['adds', { a: 1, b: 1 }] : ['finds', { number: trace.step }]);
          }),
          tools: ['adds', 'finds'],
        },
      ],
    },
    async act(stage) {
      if ((await stage.events('c')).length === 0) await stage.say('c', 'go', ['bo'], 'begin');
    },
  };
  const told = async (stage: Stage) =>
    (await stage.events('c'))
      .filter(({ kind }) => kind === 'tool.result' || kind === 'guard.stopped' || kind === 'turn.failed')
      .map(({ id, body }) => JSON.stringify([id, withoutTimes(body)]).replaceAll(/call-\d+/g, ''));
  const calm = await playKilledAt(0, play);
  const expected = await told(calm.stage);
  expect(expected.flatMap((line, index) => (line.includes('[Troupe: ') ? [index] : []))).toEqual([3]);
  expect(expected[5]).toContain('"guard":"repeats"');
  for (let at = 1; at <= calm.points.length; at++) {
    const { stage, died, driver } = await playKilledAt(at, play);
    const where = `killed at ${at} of ${calm.points.length}: ${JSON.stringify(calm.points[at - 1])}`;
    expect(died, where).toBe(true);
    expect(await told(stage), where).toEqual(expected);
    await driver.close();
  }
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

test('a failure that has a value of the arguments more often is another failure', () => {
  const failure = (text: string) => [
    { name: 'build', args: '{"part":"1"}', outcome: 'failed', text } as const,
  ];
  const first = afterStep(NO_CALLS, failure('line 1'));
  expect(afterStep(first, failure('line 1')).stale).toBe(1);
  expect(afterStep(first, failure('line 11')).stale).toBe(0);
});

test('deep and long arguments are compared without an error', () => {
  const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
  const long = JSON.stringify({ ids: Array.from({ length: 200_000 }, (_, index) => `a${index}`) });
  for (const args of [deep, long])
    for (const outcome of ['done', 'failed'] as const) {
      const call = [{ name: 'a', args, outcome, text: 'x' }];
      expect(afterStep(afterStep(NO_CALLS, call), call).stale).toBe(1);
    }
});

test('a step is stale exactly if each of its results was seen before, for any series of calls', () => {
  const args = fc.record({ x: fc.constantFrom(1, 2), y: fc.constantFrom('a', 'b') }, { requiredKeys: [] });
  const call = fc.record({
    name: fc.constantFrom('a', 'b'),
    args,
    isReversed: fc.boolean(),
    indent: fc.constantFrom(0, 2),
    text: fc.constantFrom('0', '1'),
  });
  fc.assert(
    fc.property(fc.array(fc.array(call, { minLength: 1, maxLength: 3 }), { maxLength: 20 }), (steps) => {
      const seen = new Set<string>();
      let stale = 0;
      let now = NO_CALLS;
      for (const step of steps) {
        const keys = step.map((each) => `${each.name} ${each.args.x} ${each.args.y} ${each.text}`);
        stale = keys.every((key) => seen.has(key)) ? stale + 1 : 0;
        for (const key of keys) seen.add(key);
        now = afterStep(
          now,
          step.map(({ name, text, isReversed, indent, ...each }) => {
            const fields = Object.entries(each.args);
            const written = Object.fromEntries(isReversed ? fields.toReversed() : fields);
            return { name, args: JSON.stringify(written, null, indent), outcome: 'done', text };
          }),
        );
        expect(now.stale).toBe(stale);
      }
    }),
  );
});
