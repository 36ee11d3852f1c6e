import { expect, test } from 'vitest';
import { bomb, countOpen, ENOUGH, everything, given, stillOpen } from '../support/bombs.ts';
import { asks, byStep, inOrder, modelOf, says } from '../support/engine-models.ts';
import { openStage } from '../support/engine-stage.ts';

const LIMITS = { maxTreeTasks: 60, maxTreeOpen: 15, maxDepth: 20, maxHops: 1_000, maxSteps: 6 };

test('agents that always delegate create at most the allowed tasks per message, and then all ends', async () => {
  const stage = await openStage({
    agents: [{ id: 'bo', tools: ['delegate'], model: bomb(5) }],
    limits: LIMITS,
  });
  const counted = countOpen(stage);
  await stage.say('c', 'begin', ['bo']);
  await stage.quiet();
  const events = await everything(stage);
  expect(counted.most).toBeLessThanOrEqual(LIMITS.maxTreeOpen);
  expect(counted.made).toBe(given(events).length);
  expect(counted.made).toBeLessThanOrEqual(LIMITS.maxTreeTasks);
  expect(counted.made).toBeGreaterThan(LIMITS.maxTreeTasks / 2);
  expect(stillOpen(events)).toEqual([]);
  const stops = events.flatMap((event) => (event.kind === 'guard.stopped' ? [event.body] : []));
  expect(new Set(stops.map(({ guard }) => guard))).toEqual(new Set(['tree']));
  for (const { message, goOn } of stops) {
    expect(message).toMatch(/limits\.maxTreeTasks 60|at most 15/);
    expect(goOn).toMatch(/a message of a person in c|cancel some in c/);
  }
  for (const id of new Set(events.map(({ conversation }) => conversation)))
    expect(await stage.check(id), id).toEqual([]);

  await stage.say('c', ENOUGH, ['bo']);
  await stage.quiet();
  expect((await stage.events('c')).at(-2)).toMatchObject({ body: { content: 'as you wish' } });
  expect(stage.warnings).toEqual([]);
});

test('an agent that ignores the warning ends its turn, whatever its step limit', async () => {
  const model = bomb(2, 'cy');
  const stage = await openStage({
    agents: [
      { id: 'bo', tools: ['delegate'], model },
      { id: 'cy', model: inOrder(says('done')) },
    ],
    limits: { maxTreeTasks: 2, maxSteps: 50 },
  });
  await stage.say('c', 'begin', ['bo']);
  await stage.quiet();
  // Two tasks: after its wake the model asks, is refused, asks again, and is stopped.
  expect(model.requests).toHaveLength(3);
  const failed = (await stage.events('c')).filter(({ kind }) => kind === 'turn.failed');
  expect(failed).toMatchObject([{ body: { code: 'guard_stopped' } }]);
  expect(await stage.check('c')).toEqual([]);
});

test("a person's message starts a new count; the results that arrive meanwhile do not", async () => {
  const stage = await openStage({
    agents: [
      {
        id: 'bo',
        tools: ['delegate'],
        model: byStep(asks(['delegate', { to: 'cy', task: 'one' }]), says('no')),
      },
      { id: 'cy', model: inOrder(says('done')) },
    ],
    limits: { maxTreeTasks: 2 },
  });
  await stage.say('c', 'first', ['bo']);
  await stage.quiet();
  expect(given(await everything(stage))).toHaveLength(2);
  await stage.say('c', 'second', ['bo']);
  await stage.quiet();
  expect(given(await everything(stage))).toHaveLength(4);
  const stops = (await stage.events('c')).filter(({ kind }) => kind === 'guard.stopped');
  expect(stops).toHaveLength(2);
});

test('if too many actors of a tenant are waiting, agents cannot delegate, and learn why', async () => {
  let waiting = 3;
  const asked: string[] = [];
  const model = modelOf(async function* ({ messages }) {
    const last = messages.at(-1);
    if (last?.role === 'tool') asked.push(JSON.stringify(last));
    yield* last?.role === 'tool' ? says('later, then') : asks(['delegate', { to: 'cy', task: 'one' }]);
  });
  const stage = await openStage({
    agents: [
      { id: 'bo', tools: ['delegate'], model },
      { id: 'cy', model: inOrder(says('done')) },
    ],
    pending: { limit: 3, of: async () => waiting },
  });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  const stops = (await stage.events('c')).filter(({ kind }) => kind === 'guard.stopped');
  expect(stops).toMatchObject([{ body: { guard: 'pending' } }]);
  expect(asked.join()).toContain('limits.pendingPerTenant 3');
  expect(given(await everything(stage))).toEqual([]);
  waiting = 2;
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  expect(given(await everything(stage)).length).toBeGreaterThan(0);
});
