import { expect, test } from 'vitest';
import * as z from 'zod';
import type { EventId, TextNote } from '../../src/events/index.ts';
import type { ModelRequest } from '../../src/providers/provider.ts';
import type { StoreDriver } from '../../src/store/driver.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { forever, mortal, tapDriver, writtenBy } from '../support/engine-driver.ts';
import { asks, bytes, byStep, gated, inOrder, modelOf, says, shown } from '../support/engine-models.ts';
import { ANA, openStage, type Stage, until } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';
import { answered, meanwhile, only, post, sound } from '../support/steer-stage.ts';

const NOTE = defineTool({
  name: 'note',
  description: 'notes',
  schema: z.object({ item: z.string() }),
  run: () => '',
});

function notes(during: (item: string) => Promise<unknown> = () => Promise.resolve()) {
  const noted: string[] = [];
  const tool = {
    ...NOTE,
    run: async ({ item }: { item: string }) => {
      noted.push(item);
      await during(item);
      return `noted ${item}`;
    },
  };
  return { tool: tool as typeof NOTE, noted };
}

test('N5 a person who redirects an agent during a turn of many calls is followed from the next step on', async () => {
  const { tool, noted } = notes(async (item) => {
    if (item === 'two') await post(stage, 'instead of three and four, five', ['bo'], { whileBusy: 'steer' });
  });
  const plan = ['one', 'two', 'three', 'four'];
  const bo = modelOf(async function* (request) {
    const left = (shown(request).includes('instead') ? ['five'] : plan).filter(
      (item) => !noted.includes(item),
    );
    yield* left[0] === undefined ? says('all noted') : asks(['note', { item: left[0] }]);
  });
  const stage: Stage = await openStage({ agents: [{ id: 'bo', model: bo, tools: ['note'] }], tools: [tool] });
  await post(stage, 'note one to four', ['bo']);
  await stage.quiet();
  expect(noted).toEqual(['one', 'two', 'five']);
  expect(answered(await stage.events('c'))).toEqual([
    ['done', ['note one to four', 'instead of three and four, five']],
  ]);
  await sound(stage);
});

test('N6 what a turn took in before its process died is given to it again, in order, and to no other turn', async () => {
  const driver = await openDriver();
  const first = mortal(driver);
  const look = meanwhile(async () => {
    await post(dying, 'first word', ['bo']);
    await post(dying, 'second word', ['bo'], { whileBusy: 'steer' });
  });
  const hung = modelOf(async function* ({ trace }) {
    if (trace.step === 2) await forever();
    yield* asks(['look', {}]);
  });
  const agent = { id: 'bo', tools: ['look'] };
  const dying = await openStage({ driver: first.driver, agents: [{ ...agent, model: hung }], tools: [look] });
  await post(dying, 'begin', ['bo']);
  await until('the second step is asked for', () => hung.requests.length === 2);
  first.kill();
  const next = byStep(says('never asked'), says('all heard'));
  const stage = await openStage({ driver, agents: [{ ...agent, model: next }], tools: [look] });
  await stage.quiet();
  expect(bytes(next.requests[0])).toEqual(bytes(hung.requests[1]));
  expect(wordsIn(next.requests[0])).toEqual(['first word', 'second word']);
  await post(stage, 'and now?', ['bo']);
  await stage.quiet();
  expect(wordsIn(next.requests.at(-1))).toEqual(['first word', 'second word']);
  expect(answered(await stage.events('c'))).toEqual([
    ['done', ['begin', 'first word', 'second word']],
    ['done', ['and now?']],
  ]);
  await sound(stage);
});

function wordsIn(request: ModelRequest | undefined): string[] {
  return shown(request).match(/(first|second) word/g) ?? [];
}

/** A process that crashes right after its first write of a matching event. */
function dyingAfter(driver: StoreDriver, isWanted: (id: string) => boolean) {
  const death = Promise.withResolvers<void>();
  let dead = false;
  const dying = tapDriver(driver, (op, phase, args) => {
    if (!dead && (phase === 'before' || !writtenBy(op, args).some(isWanted))) return undefined;
    dead = true;
    death.resolve();
    return forever();
  });
  return { driver: dying, death: death.promise };
}

test('N7, N10 a worker that dies right after its last words were stored: they are there once, and the turn has one ending', async () => {
  const driver = await openDriver();
  const bo = inOrder(asks(['note', { item: 'one' }]), says('noted and done'));
  const agents = [{ id: 'bo', model: bo, tools: ['note'] }];
  const dying = dyingAfter(driver, (id) => id.endsWith(':reply'));
  const first = await openStage({ driver: dying.driver, agents, tools: [notes().tool] });
  void first.say('c', 'go', ['bo'], 'go');
  await dying.death;
  const stage = await openStage({ driver, agents, tools: [notes().tool] });
  await stage.quiet();
  expect(bo.requests).toHaveLength(2);
  const events = await stage.events('c');
  expect(only(events, 'message').map(({ body }) => body.content)).toEqual(['go', 'noted and done']);
  expect(only(events, 'tool.result')).toHaveLength(1);
  expect(only(events, 'turn.done')).toHaveLength(1);
  expect(await stage.actor('c', 'bo')).toMatchObject({ turn: null, unpublished: false, owner: '' });
  await sound(stage);
});

test('N8 after a kill during streaming the next process starts the reply anew and still knows the delegations', async () => {
  const driver = await openDriver();
  const first = mortal(driver);
  const gives = asks(['delegate', { to: 'cy', task: 'count', wait: false }]);
  const streaming = modelOf(async function* () {
    const number = streaming.requests.length;
    if (number < 3) return yield* number === 1 ? gives : says('on it');
    yield { type: 'start' };
    yield { type: 'text', delta: 'half a sen' };
    await forever();
  });
  const cy = gated(says('four'), 1);
  const dying = await openStage({
    driver: first.driver,
    agents: [
      { id: 'bo', model: streaming, tools: ['delegate'] },
      { id: 'cy', model: cy },
    ],
  });
  const heard: TextNote[] = [];
  const hear = (stage: Stage) =>
    stage.troupe.watch((note) => note.type === 'text' && note.turn === 'c:bo:2' && heard.push(note));
  hear(dying);
  await post(dying, 'count', ['bo']);
  await cy.reached();
  await post(dying, 'and now?', ['bo']);
  await until('half of it is heard', () => heard.length > 0);
  first.kill();
  const slow = gated(says('four'), 1);
  const bo = inOrder(says('half a sentence, whole'), says('four it is'));
  const stage = await openStage({
    driver,
    agents: [
      { id: 'bo', model: bo, tools: ['delegate'] },
      { id: 'cy', model: slow },
    ],
  });
  hear(stage);
  expect((await stage.troupe.tasks('c', { open: true })).tasks).toMatchObject([
    { assignee: 'cy', text: 'count' },
  ]);
  await slow.reached();
  await until('the sentence is whole', async () => only(await stage.events('c'), 'message').length === 4);
  expect((await stage.troupe.tasks('c', { open: true })).tasks).toHaveLength(1);
  slow.open();
  await stage.quiet();
  expect(heard.map(({ attempt, index }) => [attempt, index])).toEqual([
    [1, 0],
    [2, 0],
  ]);
  const said = only(await stage.events('c'), 'message').map(({ body }) => body.content);
  expect(said).toEqual(['count', 'on it', 'and now?', 'half a sentence, whole', 'four it is']);
  expect(await stage.actor('c', 'bo')).toMatchObject({ turn: null, owner: '' });
  await sound(stage);
});

test.each<[string, (data: string) => string]>([
  ['record', () => '{"snapshot":'],
  [
    'snapshot',
    (data) => JSON.stringify({ ...(JSON.parse(data) as object), snapshot: '{"value":"dancing"}' }),
  ],
])('N9 a damaged %s makes its own agent fail by name, and no other', async (_, damaged) => {
  const driver = await openDriver();
  const agents = ['bo', 'cy'].map((id) => ({ id, model: inOrder(says(`${id} here`)) }));
  const before = await openStage({ driver, agents });
  await post(before, 'hello', ['bo', 'cy']);
  await before.quiet();
  await before.engine.stop();
  const key = { tenant: 'default', conversation: 'c', agent: 'bo' };
  const row = await driver.readActor(key);
  await driver.compareAndSet(key, { fence: row?.fence ?? 0 }, { data: damaged(row?.data ?? '') });
  const stage = await openStage({ driver, agents });
  await stage.troupe.send('c', {
    id: 'e2' as EventId,
    author: ANA,
    content: 'still there?',
    to: ['bo', 'cy'],
  });
  await stage.quiet();
  const events = await stage.events('c');
  expect(only(events, 'error')).toMatchObject([
    { body: { code: 'actor_corrupt', message: expect.stringContaining('@bo has failed') } },
  ]);
  expect(await stage.troupe.actors('c')).toMatchObject([
    { agent: 'bo', status: 'failed' },
    { agent: 'cy', status: 'idle' },
  ]);
  expect(answered(events, 'cy')).toEqual([
    ['done', ['hello']],
    ['done', ['still there?']],
  ]);
  expect(answered(events)).toEqual([['done', ['hello']]]);
});
