import { describe, expect, onTestFinished } from 'vitest';
import { addressKey } from '../../src/events/index.ts';
import type { ActorAddress } from '../../src/events/index.ts';
import type { WakeOutcome } from '../../src/queue/router.ts';
import { routerConformance } from '../../packages/testing/src/router-conformance.ts';
import { address, openStage, ownRedisTest, redisTest, until } from './bullmq-stage.ts';
import { startOwnRedis } from './own-redis.ts';

const DONE: WakeOutcome = { kind: 'done' };
const A = address('a');
const B = address('b');
const rethrow = (error: unknown): never => {
  throw error;
};
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe('the BullMQ router keeps the contract', () => {
  const names = routerConformance(() => Promise.reject(new Error('only for the names')));
  names.forEach(({ group, name }, index) => {
    redisTest(`${group} ${name}`, async (stage) => {
      await routerConformance(async () => stage.open())[index]?.run();
    });
  });
});

describe('many wakes over many routers', () => {
  redisTest(
    'every wake is followed by a run, no actor runs twice at once in a process, and no keys remain',
    async (stage) => {
      const actors = Array.from({ length: 20 }, (_, index) => address(`n${index}`));
      const lastWake = new Map<string, number>();
      const lastStart = new Map<string, number>();
      let parallel = 0;
      for (let each = 0; each < 3; each += 1) {
        const here = new Set<string>();
        stage.open().start(
          async (woken) => {
            const key = addressKey(woken);
            if (here.has(key)) parallel += 1;
            here.add(key);
            lastStart.set(key, performance.now());
            await pause(Math.random() * 4);
            here.delete(key);
            return DONE;
          },
          { concurrency: 8, onError: rethrow },
        );
      }
      const producers = [stage.open(), stage.open()];
      for (let round = 0; round < 100; round += 1) {
        await Promise.all(
          producers.flatMap((producer) =>
            actors.map(async (actor) => {
              // A run must start after the time at which the wake was sent.
              const began = performance.now();
              lastWake.set(addressKey(actor), Math.max(began, lastWake.get(addressKey(actor)) ?? 0));
              await producer.wake(actor);
            }),
          ),
        );
      }
      const behind = () =>
        [...lastWake].filter(([key, woken]) => (lastStart.get(key) ?? 0) < woken).map(([key]) => key);
      await until(() => behind().length === 0, { what: 'a run after every last wake' });
      expect(parallel).toBe(0);
      const idle = { waiting: 0, active: 0, delayed: 0 };
      await until(async () => JSON.stringify(await producers[0]?.depth()) === JSON.stringify(idle), {
        what: 'an idle queue',
      });
      expect(await stage.redis.keys(stage.key('d[en]:*'))).toEqual([]);
      expect(stage.warnings).toEqual([]);
    },
  );

  redisTest("wakes during another process's lease merge, and are served when it ends", async (stage) => {
    const router = stage.open();
    const began = performance.now();
    let leaseEnds = Infinity;
    let busy = 0;
    const served: number[] = [];
    router.start(
      async () => {
        if (performance.now() < leaseEnds) {
          busy += 1;
          return { kind: 'busy', retryInMs: 150 };
        }
        served.push(performance.now());
        return DONE;
      },
      { concurrency: 4, onError: rethrow },
    );
    for (let each = 0; each < 40; each += 1) {
      await router.wake(A);
      await pause(5);
    }
    // Never before the last wake, however long the wakes took.
    leaseEnds = Math.max(performance.now(), began + 600);
    await until(() => served.length > 0, { what: 'a run after the lease' });
    expect(served[0]).toBeGreaterThanOrEqual(leaseEnds);
    expect(busy).toBeLessThan(4 * (1 + (leaseEnds - began) / 150));
    await until(async () => (await stage.redis.keys(stage.key('d[en]:*'))).length === 0, {
      what: 'no keys left',
    });
  });

  redisTest('a delayed wake neither absorbs ordinary wakes nor hastens any', async (stage) => {
    const router = stage.open();
    const began = performance.now();
    const starts: string[] = [];
    const startsOf = (agent: string) => starts.filter((each) => each === agent).length;
    router.start(async ({ agent }) => (starts.push(agent), DONE), { concurrency: 2, onError: rethrow });
    await router.wake(A, { delayMs: 3_600_000 });
    for (const count of [1, 2]) {
      await router.wake(A);
      await until(() => startsOf('a') === count, { what: 'the ordinary wake' });
    }
    expect((await router.depth()).delayed).toBe(1);
    await router.wake(B, { delayMs: 1_500 });
    await router.wake(B);
    await until(() => startsOf('b') === 2, { what: 'the delayed wake' });
    expect(performance.now() - began).toBeGreaterThanOrEqual(1_497);
    expect(startsOf('a')).toBe(2);
  });

  redisTest(
    'an actor whose job stalled in this process is held back while its first run continues',
    async (stage) => {
      const router = stage.open({ lockMs: 1_000, stalledCheckMs: 500 });
      const gate = Promise.withResolvers<void>();
      let starts = 0;
      let ends = 0;
      router.start(
        async () => {
          starts += 1;
          if (starts === 1) await gate.promise;
          ends += 1;
          return DONE;
        },
        { concurrency: 4, onError: rethrow },
      );
      await router.wake(A);
      await until(() => starts === 1, { what: 'the first run' });
      const [jobId = ''] = await stage.redis.lrange(stage.key('active'), 0, -1);
      // Simulates that this process did not renew the lock.
      await until(
        async () => {
          await stage.redis.del(stage.key(`${jobId}:lock`));
          return stage.warnings.some((each) => each.includes('had stopped'));
        },
        { what: 'the stall' },
      );
      await until(async () => (await router.depth()).delayed === 1, { what: 'the held-back duplicate' });
      expect(starts).toBe(1);
      gate.resolve();
      await until(() => ends === 2, { what: 'the run of the duplicate' });
      await until(async () => (await router.depth()).active === 0, { what: 'an idle queue' });
      expect(stage.warnings.filter((each) => !/lock|had stopped/i.test(each))).toEqual([]);
    },
  );
});

describe('damage in Redis', () => {
  ownRedisTest('later wakes are served after a FLUSHALL in the middle of work', async () => {
    await using stage = openStage((await startOwnRedis(onTestFinished)).url);
    const router = stage.open();
    const starts: string[] = [];
    const gate = Promise.withResolvers<void>();
    router.start(
      async (woken: ActorAddress) => {
        starts.push(woken.agent);
        if (starts.length === 1) await gate.promise;
        return DONE;
      },
      { concurrency: 2, onError: rethrow },
    );
    await router.wake(A);
    await until(() => starts.length === 1, { what: 'the first run' });
    await router.wake(A);
    await router.wake(B, { delayMs: 3_600_000 });
    await stage.redis.flushall();
    gate.resolve();
    await router.wake(A);
    await until(() => starts.length >= 2, { what: 'the wake after the loss' });
    await router.wake(A);
    await router.wake(B);
    await until(() => starts.includes('b'), { what: 'another actor' });
    await until(async () => (await stage.redis.keys(stage.key('d[en]:*'))).length === 0, {
      what: 'no keys left',
    });
  });

  redisTest('forged and malformed jobs are counted, reported once and dropped', async (stage) => {
    let ignored = 0;
    const router = stage.open({
      observer: { onIgnored: () => (ignored += 1) },
      lockMs: 1_000,
      stalledCheckMs: 500,
    });
    const { redis, key } = stage;
    await router.wake(address('before'));
    const forge = async (id: string, fields: Record<string, string>) => {
      await redis.hset(key(id), { timestamp: '1', delay: '0', priority: '0', ...fields });
      await redis.rpush(key('wait'), id);
    };
    await forge('f1', {
      name: 'wake',
      data: '{"tenant":"../x","conversation":"c1","agent":"a"}',
      opts: '{}',
    });
    await forge('f2', { name: 'wake', data: 'null', opts: '{}' });
    await forge('f3', { name: 'shell', data: JSON.stringify(A), opts: '{}' });
    await forge('f4', { name: 'wake', data: '{"tenant":', opts: '{}' });
    await forge('f5', { name: 'wake', data: JSON.stringify(A), opts: 'null' });
    await redis.rpush(key('wait'), 'f6');
    const starts: ActorAddress[] = [];
    router.start(async (woken) => (starts.push(woken), DONE), { concurrency: 2, onError: rethrow });
    await until(() => starts.length === 1, { what: 'the real wake' });
    await until(() => router.ignored() === 6, { what: 'six dropped jobs' });
    expect(starts.map(({ agent }) => agent)).toEqual(['before']);
    expect(ignored).toBe(6);
    expect(stage.warnings.filter((each) => each.includes('not a wake of this troupe'))).toHaveLength(1);
    await until(async () => (await redis.keys(key('f*'))).length === 0, { what: 'no forged job left' });
    expect(await router.depth()).toEqual({ waiting: 0, active: 0, delayed: 0 });
  });

  redisTest(
    'a job that swallows wakes and is in no list is removed, and its actor is served',
    async (stage) => {
      const producer = stage.open({ strayAfterMs: 50 });
      await producer.wake(A);
      await stage.redis.del(stage.key('wait'));
      const router = stage.open();
      let starts = 0;
      router.start(async () => ((starts += 1), DONE), { concurrency: 1, onError: rethrow });
      await until(
        async () => {
          await producer.wake(A);
          return starts > 0;
        },
        { what: 'the actor is served again' },
      );
      expect(stage.warnings.filter((each) => each.includes('in no list'))).toHaveLength(1);
      await until(async () => (await stage.redis.keys(stage.key('de:*'))).length === 0, {
        what: 'no key left',
      });
    },
  );

  redisTest('BullMQ recovers from a deduplication key whose job is gone', async (stage) => {
    const router = stage.open();
    await stage.redis.set(stage.key(`de:${addressKey(A)}`), '4711');
    let starts = 0;
    router.start(async () => ((starts += 1), DONE), { concurrency: 1, onError: rethrow });
    await router.wake(A);
    await until(() => starts === 1, { what: 'a run' });
  });
});

redisTest('an observer learns how long a wake waited and ran, and how it ended', async (stage) => {
  const heard: string[] = [];
  const waits: number[] = [];
  const router = stage.open({
    observer: {
      onTaken: ({ waitMs }) => waits.push(waitMs),
      onDone: ({ runMs, outcome }) => {
        heard.push(outcome);
        if (runMs < 0) heard.push('negative');
        throw new Error('an observer that throws');
      },
    },
  });
  await router.wake(A);
  await pause(50);
  const outcomes: WakeOutcome[] = [{ kind: 'busy', retryInMs: 10 }, DONE];
  router.start(async () => outcomes.shift() ?? rethrow(new Error('failed')), {
    concurrency: 1,
    onError: () => {},
  });
  await until(() => heard.length === 2, { what: 'busy and done' });
  await router.wake(A);
  await until(() => heard.length === 3, { what: 'failed' });
  expect(heard).toEqual(['busy', 'done', 'failed']);
  // Once per wake, however often it runs.
  expect(waits).toHaveLength(2);
  expect(waits[0]).toBeGreaterThanOrEqual(45);
});
