import { expect } from 'vitest';
import { DEFAULT_LIMITS } from '../../src/actors/actor/engine-deps.ts';
import { attack } from './attack.ts';
import { ANA, openStage, ZETA } from './stage.ts';

/** Tasks that the bomb gives on each request. */
const FAN_OUT = 20;
/** Number of tasks at which the bomb is under way, far from its end. */
const UNDER_WAY = 60;
/**
 * Concurrent turns of one process, one waiting turn of each tenant and conversation, and room for steps under way.
 */
const SOON = 300;

/** For a machine shared with others. */
const PATIENCE = { timeout: 60_000 };

attack(
  31,
  'agents that always delegate are bounded, delay no tenant or conversation, and end when a person cancels',
  async (refused) => {
    await using stage = await openStage({
      agents: [{ id: 'bo', tools: ['delegate'] }, 'cy'],
      answer({ agent, number }) {
        if (agent === 'cy') return { text: 'here I am' };
        const task = (index: number) => ({ to: 'bo', force: true, task: `part ${number}.${index}` });
        return {
          calls: Array.from({ length: FAN_OUT }, (_, index) => ({
            name: 'delegate',
            args: JSON.stringify(task(index)),
          })),
        };
      },
    });
    const { troupe, vendor } = stage;
    const asked = (agent: string) =>
      vendor.requests.filter(({ body }) => (body as { model: string }).model === agent).length;
    await troupe.send('bomb', { author: ANA, content: 'begin', to: ['bo'] });
    await expect.poll(() => asked('bo'), PATIENCE).toBeGreaterThan(UNDER_WAY);

    for (const [tenant, conversation] of [
      [troupe.forTenant(ZETA), 'talk'],
      [troupe, 'other'],
    ] as const) {
      const before = asked('bo');
      const others = asked('cy');
      await tenant.send(conversation, { author: ANA, content: 'are you there?', to: ['cy'] });
      await expect.poll(() => asked('cy'), { ...PATIENCE, interval: 1 }).toBe(others + 1);
      expect(asked('bo') - before, conversation).toBeLessThan(SOON);
    }

    const author = { kind: 'user', id: 'ana', name: 'Ana' };
    const cancelled = await stage.command({
      command: 'cancelTask',
      conversation: 'bomb',
      task: 'all',
      author,
    });
    expect(cancelled.status).toBe(202);
    const atMost = asked('bo') + 64;
    await troupe.idle();
    // Requests already on their way to the vendor at the cancellation.
    expect(asked('bo')).toBeLessThanOrEqual(atMost);
    const known = await troupe.conversations(5_000);
    const threads = known.filter(({ id }) => id.startsWith('bomb.'));
    expect(threads.length).toBeGreaterThan(FAN_OUT);
    expect(threads.length).toBeLessThanOrEqual(DEFAULT_LIMITS.maxTreeTasks);
    const open = await Promise.all(
      [...threads.map(({ id }) => id), 'bomb'].map((id) => troupe.tasks(id, { open: true })),
    );
    expect(open.flatMap(({ tasks }) => tasks)).toEqual([]);

    const quiet = asked('bo');
    const bo = { kind: 'agent', id: 'bo', name: 'bo' } as const;
    for (const { id } of threads.slice(0, 50))
      await troupe.send(id, { author: bo, content: 'go on', to: ['bo'] });
    await troupe.idle();
    expect(asked('bo')).toBe(quiet);
    refused('cancelTask all: no further request');
  },
);

attack(31, 'one message causes a limited number of tasks, whatever their agents do', async (refused) => {
  const limits = { maxTreeTasks: 100, maxTreeOpen: 30, maxDepth: 20 };
  await using stage = await openStage({
    agents: [{ id: 'bo', tools: ['delegate'] }],
    troupe: { constants: { limits } },
    answer: ({ number }) => ({
      calls: Array.from({ length: FAN_OUT }, (_, index) => ({
        name: 'delegate',
        args: JSON.stringify({ to: 'bo', force: true, task: `part ${number}.${index}` }),
      })),
    }),
  });
  await stage.say('bomb', 'begin', { to: ['bo'] });
  const threads = (await stage.troupe.conversations(5_000)).filter(({ id }) => id !== 'bomb');
  expect(threads.length).toBeLessThanOrEqual(limits.maxTreeTasks);
  // Which bound is met first depends on whether the tasks that are open end before others begin.
  expect(threads.length).toBeGreaterThanOrEqual(limits.maxTreeOpen);
  const logs = await Promise.all(['bomb', ...threads.map(({ id }) => id)].map((id) => stage.events(id)));
  const stops = logs.flat().flatMap((event) => (event.kind === 'guard.stopped' ? [event.body] : []));
  const tree = stops.filter(({ guard }) => guard === 'tree');
  expect(tree.length).toBeGreaterThan(0);
  for (const { message } of tree) expect(message).toMatch(/limits\.maxTreeTasks 100|at most 30/);
  refused('guard.stopped tree');
});
