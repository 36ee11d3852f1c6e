import { expect, test } from 'vitest';
import * as z from 'zod';
import { systemClock } from '../../src/base/clock.ts';
import type { Command, Event, EventOf } from '../../src/events/index.ts';
import type { FakeReply } from '../../packages/testing/src/fake-vendors.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { type Company, company as openCompany, type CompanyOptions, ROOM, UMA } from '../support/company.ts';
import { storeAway, tapDriver, writtenBy } from '../support/engine-driver.ts';
import { asks, inOrder, says, shown, times } from '../support/engine-models.ts';
import { openStage } from '../support/engine-stage.ts';
import { createMemoryDocuments } from '../../sim/memory-documents.ts';
import { createDocumentDriver } from '../../src/store/documents/document-driver.ts';
import { openDriver } from '../support/mode.ts';

/** Tasks between agents, through the public API. */
const TOOLS = { p: { tools: ['delegate', 'follow_up'] } };

/** Names the context window of the models, since an unknown one causes a warning. */
function company(ids: readonly string[], { agents = {}, ...more }: CompanyOptions): Promise<Company> {
  const known = ids.map((id) => [id, { contextWindow: 128_000, ...agents[id] }]);
  return openCompany(ids, { ...more, agents: Object.fromEntries(known) });
}

function gives(...given: [to: string, task: string, more?: object][]): FakeReply {
  const calls = given.map(([to, task, more]) => ({
    name: 'delegate',
    args: JSON.stringify({ to, task, ...more }),
  }));
  return { text: 'let me see', calls };
}

async function only<K extends Event['kind']>(
  { troupe }: Company,
  kind: K,
  conversation = ROOM,
): Promise<EventOf<K>[]> {
  const { events } = await troupe.events(conversation);
  return events.filter((event) => event.kind === kind) as EventOf<K>[];
}

/** A model whose first answer waits until the test releases it. */
function gated(text: string) {
  const asked = Promise.withResolvers<void>();
  const open = Promise.withResolvers<void>();
  const answer = async () => {
    asked.resolve();
    await open.promise;
    return { text };
  };
  return { answer, asked: asked.promise, letGo: () => open.resolve() };
}

function counter() {
  const runs: string[] = [];
  const count = defineTool({
    name: 'count',
    description: 'counts',
    schema: z.object({}),
    run: (_, { effect }) => `counted ${runs.push(effect)}`,
  });
  return { count, runs };
}

async function threadOf({ troupe }: Company): Promise<string> {
  return (await troupe.tasks(ROOM)).tasks[0]?.thread ?? '';
}

test('N1 the result of a child that ends before its parent has finished asking is kept', async () => {
  const opened = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  let isHeld = false;
  const stored = await openDriver();
  const told = tapDriver(stored, (op, phase, args) => {
    if (phase === 'before') return;
    const ids = writtenBy(op, args);
    if (ids.some((id) => /^d-\w+:opened$/.test(id))) opened.resolve();
    if (ids.some((id) => /^d-\w+:end$/.test(id))) ended.resolve();
  });
  // Holds the parent, right after it has informed the child, until the child has ended.
  const step: typeof stored.step = async (key, asked) => {
    const outcome = await told.step(key, asked);
    if (isHeld || key.agent !== 'bo' || !(await isSettled(opened.promise))) return outcome;
    isHeld = true;
    await ended.promise;
    return outcome;
  };
  const driver = { ...told, step };
  const bo = inOrder(asks(['delegate', { to: 'cy', task: 'be quick' }]), says('quick it was'));
  const stage = await openStage({
    driver,
    agents: [
      { id: 'bo', model: bo, tools: ['delegate'] },
      { id: 'cy', model: inOrder(says('as a flash')) },
    ],
  });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  expect(isHeld).toBe(true);
  expect(bo.requests).toHaveLength(2);
  expect(times(shown(bo.requests[1]), 'as a flash')).toBe(1);
  expect(await stage.check('c')).toEqual([]);
});

async function isSettled(promise: Promise<void>): Promise<boolean> {
  return Promise.race([promise.then(() => true), Promise.resolve().then(() => false)]);
}

test('N2 a parent that waits for three results is woken once, with all of them', async () => {
  /** Each but the first waits for the results of the earlier ones. */
  const after = (count: number, text: string) => async () => {
    while ((await only(room, 'delegation.ended')).length < count) await systemClock.sleep(2);
    await systemClock.sleep(30);
    return { text };
  };
  await using room = await company(['p', 'b', 'c', 'd'], {
    agents: TOOLS,
    answers: {
      p: [gives(['b', 'one'], ['c', 'two'], ['d', 'three']), 'all are there'],
      b: ['result of one'],
      c: after(1, 'result of two'),
      d: after(2, 'result of three'),
    },
  });
  await room.say(UMA, 'p', 'go');
  expect(room.requests('p')).toHaveLength(2);
  const sent = JSON.stringify(room.raw('p'));
  for (const result of ['one', 'two', 'three']) expect(times(sent, `result of ${result}`)).toBe(1);
  expect(await only(room, 'turn.done')).toHaveLength(2);
});

test('N3 an idle parent gets a new turn with the result and repeats no work', async () => {
  const { count, runs } = counter();
  await using room = await company(['p', 'd'], {
    agents: { p: { tools: ['delegate', 'count'] } },
    tools: [count],
    answers: {
      p: [{ calls: [{ name: 'count', args: '{}' }] }, gives(['d', 'measure']), 'seven it is'],
      d: ['seven'],
    },
  });
  await room.say(UMA, 'p', 'count, then measure');
  expect(runs).toHaveLength(1);
  expect(room.requests('p')).toHaveLength(3);
  expect(await only(room, 'turn.done')).toMatchObject([{ body: { steps: 2 } }, { body: { steps: 1 } }]);
});

test('N3 a running parent sees the result at its next step, without a second turn', async () => {
  const slow = gated('seven');
  const tool = look(async () => {
    slow.letGo();
    while ((await only(room, 'delegation.ended')).length === 0) await systemClock.sleep(2);
  });
  await using room = await company(['p', 'd'], {
    agents: { p: { tools: ['delegate', 'look'] } },
    tools: [tool],
    answers: {
      p: [
        gives(['d', 'measure', { wait: false }]),
        'on it',
        { calls: [{ name: 'look', args: '{}' }] },
        'it is seven, I see',
      ],
      d: slow.answer,
    },
  });
  await room.post(UMA, 'p', 'measure');
  await slow.asked;
  await room.say(UMA, 'p', 'how far are you?');
  expect(room.requests('p')).toHaveLength(4);
  expect(times(JSON.stringify(room.raw('p', 3)), 'seven')).toBe(0);
  expect(times(JSON.stringify(room.raw('p', 4)), '\\nseven')).toBe(1);
  expect(await only(room, 'turn.done')).toHaveLength(2);
});

function look(during: () => Promise<unknown>) {
  return defineTool({
    name: 'look',
    description: 'takes its time',
    schema: z.object({}),
    idempotent: true,
    run: async () => {
      await during();
      return 'seen';
    },
  });
}

test('N4 a follow-up continues in the same thread, where the child sees its earlier work', async () => {
  await using room = await company(['p', 'd'], {
    agents: TOOLS,
    answers: {
      p: [
        gives(['d', 'draft a title']),
        { calls: [{ name: 'follow_up', args: '{"task":"d-","text":"shorter"}' }] },
        'there it is',
      ],
      d: ['A very long title', 'Title'],
    },
  });
  await room.say(UMA, 'p', 'a title, please');
  const opened = await only(room, 'delegation.opened');
  expect(new Set(opened.map(({ body }) => body.thread)).size).toBe(1);
  expect(JSON.stringify(room.raw('d', 2))).toMatch(/draft a title.*A very long title.*shorter/);
  expect(room.requests('p')).toHaveLength(3);
});

test.each([
  ['behind', -60_000],
  ['ahead', 60_000],
])(
  'N11 a message and a result of the same moment are both seen once, with a clock that runs %s',
  async (_, step) => {
    let now = 1_800_000_000_000;
    const clock = { ...systemClock, now: () => (now += step / 1_000) };
    const slow = gated('eleven knots');
    await using room = await company(['p', 'd'], {
      agents: TOOLS,
      clock,
      answers: { p: [gives(['d', 'measure']), 'seen', 'and seen'], d: slow.answer },
    });
    await room.post(UMA, 'p', 'measure');
    await slow.asked;
    slow.letGo();
    await room.say(UMA, 'p', 'the message');
    const last = JSON.stringify(room.raw('p'));
    expect([times(last, 'the message'), times(last, '\\neleven knots')]).toEqual([1, 1]);
    const covers = (await only(room, 'turn.done')).flatMap(({ body }) => body.covers);
    expect(covers).toEqual(covers.toSorted((a, b) => a - b));
    const { events } = await room.troupe.events(ROOM);
    expect(covers).toEqual(events.filter(({ to }) => to.length > 0).map(({ seq }) => seq));
  },
);

test('N11 a result under way when a message arrives is given once, and not again beside the message', async () => {
  let isHeld = true;
  const isEnding = Promise.withResolvers<void>();
  const documents = createMemoryDocuments();
  // Between the end in the child's own log and the one that its parent reads.
  const insert: typeof documents.events.insert = async (rows) => {
    if (isHeld && rows.some(({ conversation, id }) => conversation === 'c' && /^d-\w+:end$/.test(id))) {
      isEnding.resolve();
      throw storeAway('the log of the parent');
    }
    return documents.events.insert(rows);
  };
  const driver = createDocumentDriver(
    { ...documents, events: { ...documents.events, insert } },
    { random: Math.random, sleep: () => Promise.resolve() },
  );
  const bo = inOrder(asks(['delegate', { to: 'cy', task: 'measure' }]), says('soon'), says('so fast'));
  const stage = await openStage({
    driver,
    agents: [
      { id: 'bo', model: bo, tools: ['delegate'] },
      { id: 'cy', model: inOrder(says('eleven knots')) },
    ],
  });
  await stage.say('c', 'how fast is she?', ['bo']);
  while (!(await isSettled(isEnding.promise))) await stage.clock.advance(20);
  await stage.say('c', 'well?', ['bo']);
  while (bo.requests.length < 2) await stage.clock.advance(20);
  isHeld = false;
  await stage.quiet();
  expect(shown(bo.requests[1])).toMatch(/@cy: measure \(ended: you are told next\)/);
  expect(bo.requests.map((request) => times(shown(request), 'eleven knots'))).toEqual([0, 0, 1]);
  expect(await stage.check('c')).toEqual([]);
});

test('N12 cancelling an idle child wakes its parent once, with the notice that the task was cancelled', async () => {
  await using room = await company(['p', 'd'], {
    agents: { ...TOOLS, d: { tools: ['ask'] } },
    answers: {
      p: [gives(['d', 'paint it']), 'so be it'],
      d: [{ calls: [{ name: 'ask', args: '{"question":"red or blue?"}' }] }],
    },
  });
  await room.say(UMA, 'p', 'paint');
  const thread = await threadOf(room);
  const order = (command: object) => room.troupe.command(command as Command, UMA);
  await order({ command: 'pause', conversation: thread, agent: 'd' });
  const { tasks } = await room.troupe.tasks(ROOM);
  await order({ command: 'cancelTask', conversation: ROOM, task: tasks[0]?.id, reason: 'no paint left' });
  await room.troupe.idle();
  expect(room.requests('p')).toHaveLength(2);
  expect(times(JSON.stringify(room.raw('p')), 'was cancelled) no paint left')).toBe(1);
  expect(
    (await only(room, 'delegation.ended')).filter(({ body }) => body.outcome === 'cancelled'),
  ).toMatchObject([{ to: ['p'], body: { outcome: 'cancelled' } }]);
  await order({ command: 'resume', conversation: thread, agent: 'd' });
  await room.troupe.idle();
  expect([room.requests('p').length, room.requests('d').length]).toEqual([2, 1]);
  expect(await room.troupe.tasks(thread, { open: true })).toMatchObject({
    tasks: [],
    thread: { isOpen: false },
  });
});
