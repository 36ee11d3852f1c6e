import { describe, expect, test } from 'vitest';
import type { Event, EventOf, Guard } from '../../src/events/index.ts';
import type { ModelEvent, ModelRequest } from '../../src/providers/provider.ts';
import { asks, breaks, inOrder, modelOf, says, shown, type TestModel } from '../support/engine-models.ts';
import { openStage, type Stage, type StageAgent } from '../support/engine-stage.ts';
import { allLogs } from '../support/killed-play.ts';

/** Small limits, so that a loop ends soon. */
const LIMITS = { maxHops: 5, maxDepth: 3, maxAgentTurns: 6, maxSteps: 5 };

type Stop = EventOf<'guard.stopped'>;

/** Never stops, unless a person says that it is enough. */
function tireless(answer: () => ModelEvent[]): TestModel {
  return modelOf(async function* (request) {
    yield* lastWords(request).includes('enough') ? says('as you wish') : answer();
  });
}

function lastWords({ messages }: ModelRequest): string {
  return messages.findLast(({ role }) => role === 'user')?.content ?? '';
}

function passes(id: string, to: string): StageAgent {
  return { id, tools: ['handoff'], model: tireless(() => asks(['handoff', { to, goal: 'go on' }])) };
}

/** Opens a new task at every request, and answers with nothing else. */
function gives(id: string, to: string, more: object = {}): StageAgent {
  let count = 0;
  const model = tireless(() => asks(['delegate', { to, task: `part ${(count += 1)}`, ...more }]));
  return { id, tools: ['delegate'], model };
}

async function run(agents: StageAgent[]): Promise<Stage> {
  const stage = await openStage({ agents, limits: LIMITS });
  await stage.say('c', 'begin', [agents[0]?.id ?? '']);
  await stage.quiet();
  return stage;
}

async function all<K extends Event['kind']>(stage: Stage, kind: K): Promise<EventOf<K>[]> {
  const events = [...(await allLogs(stage)).values()].flat();
  return events.filter((event) => event.kind === kind) as EventOf<K>[];
}

/** The guards that stopped turns; each is reported once per turn. */
async function stopsOf(stage: Stage): Promise<Guard[]> {
  const stops: Stop[] = await all(stage, 'guard.stopped');
  for (const { author, body } of stops) {
    expect(author.kind).toBe('system');
    expect(body.message).toMatch(/limits\.max|at most \d+|waits for this very work/);
    expect(body.goOn).not.toBe('');
  }
  const told = stops.map(({ turn, body }) => `${turn} ${body.guard}`);
  expect(told).toHaveLength(new Set(told).size);
  return stops.map(({ body }) => body.guard);
}

/** Checks that the next message of a person is answered normally. */
async function goesOn(stage: Stage, conversation: string, agent: string): Promise<void> {
  const stops = await stopsOf(stage);
  await stage.say(conversation, 'enough', [agent]);
  await stage.quiet();
  const events = await stage.events(conversation);
  expect(events.at(-1)).toMatchObject({ kind: 'turn.done', author: { id: agent } });
  expect(events.at(-2)).toMatchObject({ kind: 'message', body: { content: 'as you wish' } });
  expect(await stopsOf(stage)).toEqual(stops);
  for (const id of (await allLogs(stage)).keys()) expect(await stage.check(id), id).toEqual([]);
  expect(stage.warnings).toEqual([]);
}

describe('a loop is stopped, and people are answered again', () => {
  test.each([
    ['two', [passes('bo', 'cy'), passes('cy', 'bo')]],
    ['three', [passes('bo', 'cy'), passes('cy', 'di'), passes('di', 'bo')]],
  ])('%s agents that hand over in a circle', async (_, agents) => {
    const stage = await run(agents);
    expect(await stopsOf(stage)).toEqual(['hops', 'steps']);
    expect(await all(stage, 'handoff')).toHaveLength(LIMITS.maxHops);
    expect(await all(stage, 'turn.started')).toHaveLength(LIMITS.maxHops + 1);
    await goesOn(stage, 'c', 'bo');
  });

  test('H8: an agent asked to work for one that waits for it learns so; circular work does not begin', async () => {
    const stage = await run([gives('bo', 'cy'), gives('cy', 'bo')]);
    expect(new Set(await stopsOf(stage))).toEqual(new Set(['cycle', 'hops', 'steps']));
    for (const { body } of await all(stage, 'delegation.opened')) expect(body.assignee).toBe('cy');
    await goesOn(stage, 'c', 'bo');
  });

  test('nor does a circle of three', async () => {
    const stage = await run([gives('bo', 'cy'), gives('cy', 'di'), gives('di', 'bo')]);
    expect(await stopsOf(stage)).toContain('cycle');
    for (const { body } of await all(stage, 'delegation.opened')) expect(body.assignee).not.toBe('bo');
    await goesOn(stage, 'c', 'bo');
  });

  test('a forced circle ends at the depth limit of tasks', async () => {
    const stage = await run([gives('bo', 'cy', { force: true }), gives('cy', 'bo', { force: true })]);
    expect(await stopsOf(stage)).toContain('depth');
    const depths = (await all(stage, 'delegation.opened')).map(({ body }) => body.chain.length);
    expect(Math.max(...depths)).toBe(LIMITS.maxDepth);
    await goesOn(stage, 'c', 'bo');
  });

  test('H8: an agent may give itself a task once; the one working on that task may not', async () => {
    const stage = await run([gives('bo', 'bo')]);
    const chains = (await all(stage, 'delegation.opened')).map(({ body }) => body.chain);
    expect(chains.length).toBeGreaterThan(0);
    for (const chain of chains) expect(chain).toEqual(['bo']);
    expect(await stopsOf(stage)).toContain('cycle');
    await goesOn(stage, 'c', 'bo');
  });

  test.each([
    ['breaks down', breaks('provider_auth')],
    ['has no result', says('not now')],
  ])('one that tries again with somebody who %s', async (_, answer) => {
    const stage = await run([gives('bo', 'cy'), { id: 'cy', model: inOrder(answer) }]);
    expect(await stopsOf(stage)).toEqual(['hops', 'steps']);
    expect((await all(stage, 'delegation.opened')).length).toBeLessThanOrEqual(2 * LIMITS.maxHops);
    await goesOn(stage, 'c', 'bo');
  });

  test('two agents in two conversations that an application copies to each other', async () => {
    const chatty = (id: string): StageAgent => ({ id, model: tireless(() => says(`and you, says ${id}?`)) });
    const stage = await openStage({ agents: [chatty('bo'), chatty('cy')], limits: LIMITS });
    const copies: Promise<unknown>[] = [];
    stage.troupe.watch((note) => {
      if (note.type !== 'event' || note.event.kind !== 'message' || note.event.turn === undefined) return;
      const { author, conversation, body } = note.event;
      const [other, to] = conversation === 'c' ? ['d', 'cy'] : ['c', 'bo'];
      const { content } = body;
      copies.push(stage.troupe.send(other, { author, content: `(from ${author.id}) ${content}`, to: [to] }));
    });
    await stage.say('c', 'begin', ['bo']);
    await stage.quiet();
    expect(await stopsOf(stage)).toEqual(['agent_turns']);
    const turns = await all(stage, 'turn.started');
    expect(turns.length).toBeLessThanOrEqual(2 * LIMITS.maxAgentTurns + 1);
    expect(await all(stage, 'turn.failed')).toMatchObject([{ body: { code: 'guard_stopped' } }]);
    await Promise.all(copies);
    for (const id of ['c', 'd']) expect(await stage.check(id)).toEqual([]);
    await stage.say('d', 'enough', ['cy']);
    await stage.quiet();
    expect((await all(stage, 'message')).map(({ body }) => body.content)).toContain('as you wish');
  });

  test('agents of one conversation that address each other through an application', async () => {
    const bo = tireless(() => says('what does @cy think?'));
    const stage = await openStage({ agents: [{ id: 'bo', model: bo }], limits: LIMITS });
    await stage.say('c', 'begin', ['bo']);
    await stage.quiet();
    expect(bo.requests).toHaveLength(1);
    expect(shown(bo.requests[0])).toContain('begin');
    const own = {
      author: { kind: 'agent', id: 'bo', name: 'bo' },
      content: '@bo, go on',
      to: ['bo'],
    } as const;
    for (let round = 0; round < 2 * LIMITS.maxAgentTurns; round++) {
      await stage.troupe.send('c', own);
      await stage.quiet();
    }
    expect(bo.requests).toHaveLength(LIMITS.maxAgentTurns);
    expect(await stopsOf(stage)).toContain('agent_turns');
    await stage.say('c', 'enough', ['bo']);
    await stage.quiet();
    expect((await stage.events('c')).at(-2)).toMatchObject({ body: { content: 'as you wish' } });
  });
});
