import { describe, expect } from 'vitest';
import { ActorAddress } from '../../src/events/index.ts';
import type { WakeOutcome } from '../../src/queue/router.ts';
import { address, redisTest, until } from './bullmq-stage.ts';

const DONE: WakeOutcome = { kind: 'done' };
const rethrow = (error: unknown): never => {
  throw error;
};

describe('fairness between tenants', () => {
  redisTest(
    'a wake of a small tenant starts among the first hundred although 2,000 of a large one wait',
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
        what: 'no backlog key remains',
      });
    },
  );

  redisTest(
    'a message in another conversation of the same tenant starts among the first 300 although 3,000 threads of one wait',
    async (stage) => {
      const router = stage.open();
      const wake = (conversation: string, tenant = 'default') =>
        router.wake(ActorAddress.parse({ tenant, conversation, agent: 'bo' }));
      for (let each = 0; each < 3_000; each += 50) {
        await Promise.all(
          Array.from({ length: 50 }, (_, index) =>
            wake(`bomb.d-${(each + index).toString(16).padStart(12, '0')}`),
          ),
        );
      }
      await wake('other');
      await wake('talk', 'zeta');
      const order: string[] = [];
      router.start(async ({ conversation }) => (order.push(conversation), DONE), {
        concurrency: 8,
        onError: rethrow,
      });
      await until(() => order.length === 3_002, { what: 'all of them' });
      expect(order.indexOf('other')).toBeLessThan(300);
      expect(order.indexOf('talk')).toBeLessThan(300);
      const counted = async () =>
        (await stage.redis.keys(`{${stage.prefix}}:wake-{backlog,front,family}:*`)).length;
      await until(async () => (await counted()) === 0, { what: 'no count remains' });
    },
  );

  redisTest('a tenant with a wake in each of 2,000 conversations does not delay another', async (stage) => {
    const router = stage.open();
    for (let each = 0; each < 2_000; each += 50) {
      await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          router.wake(ActorAddress.parse({ tenant: 'large', conversation: `c${each + index}`, agent: 'bo' })),
        ),
      );
    }
    await router.wake(address('b', 'small'));
    const order: string[] = [];
    router.start(async ({ tenant }) => (order.push(tenant), DONE), { concurrency: 8, onError: rethrow });
    await until(() => order.length === 2_001, { what: 'all of them' });
    expect(order.indexOf('small')).toBeLessThan(200);
  });

  redisTest(
    'the waiting wakes of a tenant are bounded, and there is room again when they are served',
    async (stage) => {
      const router = stage.open({ mostWaiting: 500 });
      for (let each = 0; each < 2_000; each += 20) {
        await Promise.all(Array.from({ length: 20 }, (_, index) => router.wake(address(`n${each + index}`))));
      }
      await router.wake(address('b', 'small'));
      const { waiting } = await router.depth();
      // The known size of the queue lags behind a little.
      expect(waiting).toBeLessThan(700);
      const served = new Set<string>();
      router.start(async ({ tenant, agent }) => (served.add(`${tenant}/${agent}`), DONE), {
        concurrency: 8,
        onError: rethrow,
      });
      await until(async () => served.size >= waiting && (await router.backlog(address('b').tenant)) === 0, {
        what: 'all waiting wakes',
      });
      expect(served.has('small/b')).toBe(true);
      await until(
        async () => {
          await router.wake(address('n1999'));
          return served.has('default/n1999');
        },
        { what: 'a wake that was dropped before' },
      );
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
    'a larger backlog is served later: a tenant with 200 does not wait for all of one with 2,000',
    async (stage) => {
      const router = stage.open();
      const wakeMany = async (tenant: string, count: number) => {
        for (let each = 0; each < count; each += 50) {
          await Promise.all(
            Array.from({ length: 50 }, (_, index) => router.wake(address(`n${each + index}`, tenant))),
          );
        }
      };
      await wakeMany('large', 2_000);
      await wakeMany('middle', 200);
      const order: string[] = [];
      router.start(async ({ tenant }) => (order.push(tenant), DONE), { concurrency: 1, onError: rethrow });
      await until(() => order.length === 2_200, { what: 'all of them' });
      expect(order.lastIndexOf('middle')).toBeLessThan(600);
    },
  );

  redisTest('an outdated backlog in Redis is deleted', async (stage) => {
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

  redisTest('a wake that has waited long in a late lane moves to the plain queue', async (stage) => {
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

  redisTest('a turn that has begun goes before waiting wakes when it is due', async (stage) => {
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
  });
});
