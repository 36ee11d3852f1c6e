import { expect, test } from 'vitest';
import * as z from 'zod';
import type { Event } from '../../src/events/index.ts';
import type { StoreDriver } from '../../src/store/driver.ts';
import { createFakeSessions, newSessionMemory } from '../../packages/testing/src/fake-sessions.ts';
import { checkSessions } from '../../packages/testing/src/check-log.ts';
import { defineTool, type Tool } from '../../src/tools/tool.ts';
import { forever, mortal, tapDriver } from '../support/engine-driver.ts';
import { asks, bytes, modelOf, says, shown, type TestModel } from '../support/engine-models.ts';
import { openStage, type Stage, until } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';
import { withoutTimes } from '../support/without-times.ts';

const TODO = { items: [{ text: 'sail', status: 'pending' }] };
const STEPS = [
  asks(['todo', TODO]),
  says('I think so'),
  says(' '),
  asks(['work', {}]),
  says('half'),
  asks(['todo', { items: [{ text: 'sail', status: 'done' }] }]),
  says('all is well now'),
];

/** The step with the effect that may be lost. */
const CALL_STEP = 4;

/** Gives the same answer to the same step, in every process. */
function model(): TestModel {
  return modelOf(async function* ({ trace }) {
    yield* STEPS[trace.step - 1] ?? [];
  });
}

function worker(runs: string[]): Tool {
  return defineTool({
    name: 'work',
    description: 'works',
    schema: z.object({}),
    run(_, { effect }) {
      runs.push(effect);
      return 'worked';
    },
  });
}

function open(driver: StoreDriver, asked: TestModel, runs: string[]): Promise<Stage> {
  const agent = { id: 'bo', model: asked, tools: ['todo', 'work', 'no_response'] };
  return openStage({ driver, tools: [worker(runs)], agents: [agent] });
}

/** The log without the parts that depend on which process holds the turn. */
function story(events: readonly Event[]): string[] {
  return events.map(({ id, kind, body }) =>
    JSON.stringify([id, kind, withoutTimes(body)]).replaceAll(/call-\d+|"upTo":\d+/g, ''),
  );
}

test('a turn with corrections continues after a crash at any store operation, with the same messages and requests', async () => {
  const whole = model();
  const calm = await open(await openDriver(), whole, []);
  await calm.say('c', 'go', ['bo'], 'm1');
  await calm.quiet();
  const expected = story(await calm.events('c'));
  expect(expected.filter((line) => line.includes('"injection"'))).toHaveLength(3);
  const requests = new Map(whole.requests.map((request) => [request.trace.step, stable(request)]));

  let survived = false;
  let crashes = 0;
  for (let at = 1; !survived; at++) {
    const driver = await openDriver();
    const runs: string[] = [];
    const asked: TestModel[] = [];
    let count = 0;
    let dead = false;
    let isLost = false;
    const dying = tapDriver(driver, async (_op, phase) => {
      if (!dead && phase === 'after' && (count += 1) === at) dead = true;
      if (dead) await forever();
    });
    asked.push(model());
    const first = await open(dying, asked[0] as TestModel, runs);
    const said = first.say('c', 'go', ['bo'], 'm1');
    await Promise.race([said, until('the crash', () => dead)]).catch(() => undefined);
    await Promise.race([first.quiet(), until('the crash', () => dead)]).catch(() => undefined);
    survived = !dead;
    if (dead) {
      crashes += 1;
      asked.push(model());
      const second = await open(driver, asked[1] as TestModel, runs);
      await second.say('c', 'go', ['bo'], 'm1');
      await second.quiet();
      expect(await second.check('c')).toEqual([]);
      for (let step = 1; step <= STEPS.length; step++)
        expect(await second.troupe.promptOf('c:bo:1', step)).toMatchObject({ step, verified: true });
      const events = await second.events('c');
      // In that case nobody knows whether the call was made. The model is told so, and the story differs from there
      // on.
      isLost = events.some(({ kind, body }) => kind === 'tool.result' && body.outcome === 'lost');
      if (!isLost) expect([at, story(events)]).toEqual([at, expected]);
      await second.troupe.close();
    }
    for (const request of asked.flatMap(({ requests: all }) => all)) {
      if (isLost && request.trace.step > CALL_STEP) continue;
      expect([at, request.trace.step, stable(request)]).toEqual([
        at,
        request.trace.step,
        requests.get(request.trace.step),
      ]);
    }
    expect(runs.length).toBeLessThanOrEqual(1);
  }
  expect(crashes).toBeGreaterThan(20);
});

/** Each attempt at an answer mints new call ids, and the journal keeps the first. */
function stable(request: Parameters<typeof bytes>[0]): string {
  return bytes(request)
    .replaceAll(/call-\d+/g, 'call')
    .replaceAll(/#\d{6}(?=\]?$)/gm, '#');
}

test('a process that takes over a turn to end it finds the steps behind a correction', async () => {
  const driver = await openDriver();
  const first = mortal(driver);
  const runs: string[] = [];
  const hung = modelOf(async function* ({ trace }) {
    if (trace.step === 5) await new Promise(() => undefined);
    yield* STEPS[trace.step - 1] ?? [];
  });
  const stage = await open(first.driver, hung, runs);
  await stage.say('c', 'go', ['bo']);
  await until('the fifth step', () => hung.requests.length === 5);
  await stage.troupe.command(
    { command: 'abort', turn: 'c:bo:1' as never },
    { kind: 'user', id: 'u', name: 'U' },
  );
  first.kill();
  const next = await open(driver, model(), runs);
  await next.quiet();
  const events = await next.events('c');
  expect(events.at(-1)?.kind).toBe('turn.aborted');
  expect(events.map(({ id }) => id)).toEqual(
    expect.arrayContaining([
      'c:bo:1:step:1',
      'c:bo:1:note:1',
      'c:bo:1:note:2',
      'c:bo:1:step:3',
      'c:bo:1:result:3.0',
    ]),
  );
  expect(await next.check('c')).toEqual([]);
});

test.each([true, false])(
  'a provider with sessions gets the reason why the turn continues, and its prompts can be rendered again (rewind %s)',
  async (rewind) => {
    const memory = newSessionMemory();
    let turn = 0;
    const sessions = createFakeSessions({
      memory,
      rewind,
      answer: (request, signal) =>
        modelOf(async function* ({ trace }) {
          turn = Number(trace.turn.split(':').at(-1));
          yield* turn === 2 ? (STEPS[trace.step - 1] ?? []) : says(`turn ${turn}`);
        }).stream(request, { signal }),
    });
    const stage = await openStage({
      tools: [worker([])],
      agents: [{ id: 'bo', model: sessions, tools: ['todo', 'work', 'no_response'] }],
    });
    for (const content of ['first question', 'second question', 'third question']) {
      await stage.say('c', content, ['bo']);
      await stage.quiet();
    }
    const second = memory.seen.filter(({ trace }) => trace.turn === 'c:bo:2');
    const noted = second.filter(({ sent }) => shown({ messages: sent } as never).includes('cannot end yet'));
    expect(noted.map(({ trace }) => trace.step)).toEqual([3, 4, 6]);
    for (const { sent } of noted) expect(sent.at(-1)?.content).toContain('cannot end yet');
    // The session holds the text before the correction exactly once.
    expect(noted.map(({ transcript }) => transcript.join('\n').split('I think so').length)).toEqual([
      2, 2, 2,
    ]);
    expect(checkSessions(await stage.events('c'), 'bo', memory.seen)).toEqual([]);
    for (let step = 1; step <= STEPS.length; step++)
      expect(await stage.troupe.promptOf('c:bo:2', step)).toMatchObject({ step, verified: true });
    expect(await stage.troupe.promptOf('c:bo:3')).toMatchObject({ mode: 'delta', verified: true });
    expect((await stage.events('c')).filter(({ kind }) => kind === 'message').at(-1)).toMatchObject({
      body: { content: 'turn 3' },
    });
    expect(await stage.check('c')).toEqual([]);
    expect(stage.warnings).toEqual([]);
  },
);
