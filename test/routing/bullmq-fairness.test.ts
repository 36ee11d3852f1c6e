import { describe, expect } from 'vitest';
import type { WakeOutcome } from '../../src/routing/router.ts';
import { address, redisTest, until } from './bullmq-stage.ts';

const DONE: WakeOutcome = { kind: 'done' };
const rethrow = (error: unknown): never => {
  throw error;
};

describe('fairness between tenants', () => {
  redisTest(
    'one wake of a small tenant starts among the first hundred although 2,000 of a large one wait',
    async (stage) => {
      const router = stage.open();
      for (let each = 0; each < 2_000; each += 50) {
        await Promise.all(
          Array.from({ length: 50 }, (_, index) => router.wake(address(`a${each + index}`, 'large'))),
        );
      }
      await router.wake(address('b', 'small'));
      expect((await router.depth()).waiting).toBe(2_001);
      const order: string[] = [];
      router.start(async ({ agent }) => (order.push(agent), DONE), { concurrency: 8, onError: rethrow });
      await until(() => order.length === 2_001, { what: 'all of them' });
      expect(order.indexOf('b')).toBeLessThan(100);
      expect(new Set(order).size).toBe(2_001);
      await until(async () => (await stage.redis.keys(`{${stage.prefix}}:wake-backlog:*`)).length === 0, {
        what: 'no backlog is remembered',
      });
    },
  );

  redisTest('wakes of one tenant keep their order, whatever its backlog', async (stage) => {
    const router = stage.open();
    const names = Array.from({ length: 500 }, (_, index) => `n${index}`);
    for (const name of names) await router.wake(address(name));
    const order: string[] = [];
    router.start(async ({ agent }) => (order.push(agent), DONE), { concurrency: 1, onError: rethrow });
    await until(() => order.length === names.length, { what: 'all of them' });
    expect(order).toEqual(names);
  });

  redisTest(
    'the further behind, the later: a tenant with 200 is not behind all of one with 2,000',
    async (stage) => {
      const router = stage.open();
      const wakeMany = (tenant: string, count: number) =>
        Promise.all(Array.from({ length: count }, (_, index) => router.wake(address(`n${index}`, tenant))));
      await wakeMany('large', 2_000);
      await wakeMany('middle', 200);
      const order: string[] = [];
      router.start(async ({ tenant }) => (order.push(tenant), DONE), { concurrency: 1, onError: rethrow });
      await until(() => order.length === 2_200, { what: 'all of them' });
      expect(order.lastIndexOf('middle')).toBeLessThan(600);
    },
  );

  redisTest('a backlog in Redis that is not true any more is thrown away', async (stage) => {
    const key = `{${stage.prefix}}:wake-backlog:default`;
    await stage.redis.sadd(key, ...Array.from({ length: 5_000 }, (_, index) => `gone${index}`));
    const router = stage.open();
    let served = 0;
    router.start(async () => ((served += 1), DONE), { concurrency: 4, onError: rethrow });
    let sent = 0;
    await until(
      async () => {
        await router.wake(address(`n${sent}`));
        sent += 1;
        return (await stage.redis.scard(key)) < 100;
      },
      { what: 'the repair' },
    );
    await until(() => served === sent, { what: 'all of them' });
  });

  redisTest('a wake that has waited long behind others queues with the plain ones', async (stage) => {
    const router = stage.open({ strayAfterMs: 100 });
    await Promise.all(Array.from({ length: 300 }, (_, index) => router.wake(address(`n${index}`))));
    const last = address('n299');
    const prioritized = () => stage.redis.zcard(stage.key('prioritized'));
    const before = await prioritized();
    expect(before).toBeGreaterThan(200);
    await until(
      async () => {
        await router.wake(last);
        return (await prioritized()) < before;
      },
      { what: 'the promotion' },
    );
  });

  redisTest(
    'work that was begun goes before what nobody has looked at, when its time has come',
    async (stage) => {
      const router = stage.open();
      await router.wake(address('begun'));
      for (let each = 0; each < 400; each++) await router.wake(address(`n${each}`));
      const order: string[] = [];
      router.start(
        async ({ agent }) => {
          order.push(agent);
          await new Promise((resolve) => setTimeout(resolve, 2));
          const isFirst = order.length === 1;
          return isFirst ? { kind: 'busy', retryInMs: 50, isBegun: true } : DONE;
        },
        { concurrency: 1, onError: rethrow },
      );
      await until(() => order.length === 402, { what: 'all of them' });
      expect(order[0]).toBe('begun');
      expect(order.lastIndexOf('begun')).toBeLessThan(200);
    },
  );
});
