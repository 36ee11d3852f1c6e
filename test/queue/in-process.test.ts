import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { ActorAddress } from '../../src/events/index.ts';
import { createInProcessRouter } from '../../src/queue/in-process.ts';
import type { WakeOutcome } from '../../src/queue/router.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { untilHolds } from '../support/until-holds.ts';
import { routerConformance } from '../../packages/testing/src/router-conformance.ts';

const A = ActorAddress.parse({ tenant: 'default', conversation: 'c1', agent: 'a' });
const B = ActorAddress.parse({ tenant: 'default', conversation: 'c1', agent: 'b' });
const rethrow = (error: unknown): never => {
  throw error;
};

describe('the in-process router keeps the contract', () => {
  const open = async () => createInProcessRouter({ clock: systemClock });
  for (const each of routerConformance(open)) {
    test(`${each.group} ${each.name}`, () => each.run());
  }
});

describe('the in-process router', () => {
  test('starts no handler inside the call to wake', async () => {
    const router = createInProcessRouter({ clock: createFakeClock() });
    let starts = 0;
    router.start(async () => (starts++, { kind: 'done' }), { concurrency: 1, onError: rethrow });
    const woken = router.wake(A);
    expect(starts).toBe(0);
    await woken;
    await router.close();
  });

  test('keeps the delay of a busy actor when a wake comes in between', async () => {
    const clock = createFakeClock();
    const router = createInProcessRouter({ clock });
    const startedAt: number[] = [];
    const outcomes: WakeOutcome[] = [{ kind: 'busy', retryInMs: 500 }];
    router.start(async () => (startedAt.push(clock.monotonic()), outcomes.shift() ?? { kind: 'done' }), {
      concurrency: 1,
      onError: rethrow,
    });
    await router.wake(A);
    await clock.advance(100);
    await router.wake(A);
    expect(await router.depth()).toEqual({ waiting: 0, active: 0, delayed: 1 });
    await clock.advance(1_000);
    expect(startedAt).toEqual([0, 500]);
    await router.close();
  });

  test('serves a delayed wake after its due time even if the actor was woken before', async () => {
    const clock = createFakeClock();
    const router = createInProcessRouter({ clock });
    const startedAt: number[] = [];
    router.start(async () => (startedAt.push(clock.monotonic()), { kind: 'done' }), {
      concurrency: 1,
      onError: rethrow,
    });
    await router.wake(A, { delayMs: 300 });
    await router.wake(A);
    await clock.advance(1_000);
    expect(startedAt).toEqual([0, 300]);
    await router.close();
  });

  test('leaves no sleeper behind when it is closed', async () => {
    const clock = createFakeClock();
    const router = createInProcessRouter({ clock });
    await router.wake(A, { delayMs: 1_000 });
    await router.wake(B, { delayMs: 2_000 });
    await router.close();
    expect(clock.sleeping()).toBe(0);
  });

  test('gives the event loop its turns while actors wake each other without end', async () => {
    const router = createInProcessRouter({ clock: systemClock });
    const other = new Map([
      [A.agent, B],
      [B.agent, A],
    ]);
    router.start(
      async ({ agent }) => {
        await router.wake(other.get(agent) ?? A);
        return { kind: 'done' };
      },
      { concurrency: 1, onError: rethrow },
    );
    await router.wake(A);
    await new Promise((resolve) => setTimeout(resolve, 0));
    await router.close();
  });

  test('starts a flood beside another tenant only when the event loop is idle', async () => {
    const idle = Promise.withResolvers<void>();
    const fake = createFakeClock();
    const clock = { ...fake, sleep: (ms: number) => (ms > 0 ? fake.sleep(ms) : idle.promise) };
    const router = createInProcessRouter({ clock });
    const started: string[] = [];
    const handler = async ({ tenant }: ActorAddress): Promise<WakeOutcome> => {
      started.push(tenant);
      await idle.promise;
      return { kind: 'done' };
    };
    router.start(handler, { concurrency: 64, onError: rethrow });
    const wake = (tenant: string, agent: string) => router.wake(ActorAddress.parse({ ...A, tenant, agent }));
    await wake('calm', 'a');
    for (let each = 0; each < 50; each += 1) await wake('noisy', `n${each}`);
    await wake('calm', 'b');
    await untilHolds(() => expect(started).toEqual(['calm', ...Array(4).fill('noisy'), 'calm']));
    idle.resolve();
    await untilHolds(() => expect(started).toHaveLength(52));
    await router.close();
  });

  test('refuses a second start and a concurrency below 1', () => {
    const router = createInProcessRouter({ clock: createFakeClock() });
    const handler = async (): Promise<WakeOutcome> => ({ kind: 'done' });
    expect(() => router.start(handler, { concurrency: 0, onError: rethrow })).toThrow('concurrency must be');
    router.start(handler, { concurrency: 1, onError: rethrow });
    expect(() => router.start(handler, { concurrency: 1, onError: rethrow })).toThrow('started already');
  });

  test('serves a hundred thousand waiting actors in order', async () => {
    const router = createInProcessRouter({ clock: systemClock });
    const count = 100_000;
    const order: number[] = [];
    const served = Promise.withResolvers<void>();
    for (let each = 0; each < count; each += 1)
      await router.wake({ ...A, agent: `n${each}` as ActorAddress['agent'] });
    router.start(
      async ({ agent }) => {
        order.push(Number(agent.slice(1)));
        if (order.length === count) served.resolve();
        return { kind: 'done' };
      },
      { concurrency: 4, onError: rethrow },
    );
    await served.promise;
    expect(order.every((each, index) => each === index)).toBe(true);
    await router.close();
  });
});
