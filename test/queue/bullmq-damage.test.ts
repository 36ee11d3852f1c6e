import { describe, expect } from 'vitest';
import type { WakeOutcome } from '../../src/queue/router.ts';
import { address, type BullmqStage, redisTest, until } from './bullmq-stage.ts';
import { FIXED, type KeyType, NONSENSE, plant, TYPES } from './queue-damage.ts';

const DONE: WakeOutcome = { kind: 'done' };
const GUARD_MS = 100;
const ignore = () => {};

/** A working router. `runsOf` wakes an actor again until it runs, as a sweeper does. */
function openWorker(stage: BullmqStage) {
  const runs = new Map<string, number>();
  let losses = 0;
  const router = stage.open({
    guardMs: GUARD_MS,
    strayAfterMs: 500,
  });
  function start(): void {
    router.start(
      async ({ agent }) => {
        runs.set(agent, (runs.get(agent) ?? 0) + 1);
        return DONE;
      },
      { concurrency: 2, onError: ignore, onLost: () => void (losses += 1) },
    );
  }
  async function runsOf(agent: string, what: string): Promise<void> {
    const before = runs.get(agent) ?? 0;
    await until(
      async () => {
        await router.wake(address(agent)).catch(ignore);
        return (runs.get(agent) ?? 0) > before;
      },
      { what },
    );
  }
  return { router, start, runsOf, losses: () => losses };
}

const wrongTypes = Object.entries(FIXED).map(([part, right]): [string, KeyType, KeyType[]] => [
  part,
  right,
  TYPES.filter((type) => type !== right),
]);

describe('keys of the queue with a wrong type', () => {
  for (const [part, right, wrong] of wrongTypes) {
    redisTest(`are repaired and reported, before the start and during work: ${part}`, async (stage) => {
      const { router, start, runsOf, losses } = openWorker(stage);
      const isWell = async () => ['none', right].includes(await stage.redis.type(stage.key(part)));
      const [first = 'hash', ...others] = wrong;
      await plant(stage.redis, stage.key(part), first);
      start();
      await runsOf('a', `work with ${part} as ${first}`);
      for (const type of others) {
        await plant(stage.redis, stage.key(part), type);
        await until(isWell, { what: `${part} as ${type} is repaired` });
        await runsOf('a', `work with ${part} as ${type}`);
        await runsOf('b', `work of others with ${part} as ${type}`);
      }
      expect(await isWell()).toBe(true);
      await router.check();
      // BullMQ itself deletes the counter of priorities when no job has one.
      if (part === 'pc') return;
      expect(losses()).toBeGreaterThan(0);
      const reported = stage.warnings.filter((each) => each.includes(stage.key(part)));
      expect(reported.join('\n')).toContain(`must be a ${right}`);
    });
  }

  redisTest('are only reported by a process that takes no wakes', async (stage) => {
    const api = stage.open();
    await api.check();
    for (const [part, , [type = 'hash']] of wrongTypes) {
      await plant(stage.redis, stage.key(part), type);
      await expect(api.check()).rejects.toMatchObject({
        code: 'queue_unavailable',
        message: expect.stringContaining(stage.key(part)),
      });
      expect(await stage.redis.type(stage.key(part))).toBe(type);
      await stage.redis.del(stage.key(part));
      await api.check();
    }
  });

  redisTest('are repaired by many processes at once, and every actor runs', async (stage) => {
    const runs = new Set<string>();
    const routers = Array.from({ length: 4 }, () => stage.open({ guardMs: GUARD_MS }));
    const wakeAll = () =>
      Promise.all(Array.from({ length: 30 }, (_, i) => routers[i % 4]!.wake(address(`a${i}`)).catch(ignore)));
    for (const router of routers) {
      router.start(async ({ agent }) => (runs.add(agent), DONE), {
        concurrency: 1,
        onError: ignore,
        onLost: () => void wakeAll(),
      });
    }
    for (const part of ['wait', 'active', 'events', 'id', 'stalled']) {
      runs.clear();
      const woken = wakeAll();
      await plant(stage.redis, stage.key(part), part === 'id' ? 'list' : 'string');
      await woken;
      await until(
        async () => {
          await wakeAll();
          return runs.size === 30;
        },
        { what: `all run after ${part}` },
      );
    }
  });
});

describe("invalid contents of the queue's keys", () => {
  for (const { name, write } of NONSENSE) {
    redisTest(`do not stop work: ${name}`, async (stage) => {
      const { start, runsOf, router } = openWorker(stage);
      await write(stage.redis, stage.key);
      start();
      await runsOf('a', `work with ${name}, before the start`);
      await write(stage.redis, stage.key);
      await runsOf('a', `work with ${name}`);
      await runsOf('b', `work of others with ${name}`);
      await until(
        () =>
          router.check().then(
            () => true,
            () => false,
          ),
        { what: 'all is well again' },
      );
    });
  }

  redisTest('do not stop an actor: keys of its wake, of every type', async (stage) => {
    const { start, runsOf } = openWorker(stage);
    start();
    for (const [index, type] of TYPES.entries()) {
      const agent = `x${index}`;
      const name = `default/c1/${agent}`;
      for (const part of [`de:${name}`, `dn:${name}`]) {
        await plant(stage.redis, stage.key(part), type);
        await runsOf(agent, `work with ${part} as ${type}`);
      }
    }
  });

  redisTest('do not stop others: jobs of every type, and with invalid numbers', async (stage) => {
    const { start, runsOf } = openWorker(stage);
    for (const type of TYPES) {
      await plant(stage.redis, stage.key(`job-${type}`), type);
      await stage.redis.rpush(stage.key('wait'), `job-${type}`);
    }
    await stage.redis.hset(stage.key('bad'), {
      name: 'wake',
      data: '{}',
      opts: '{}',
      ats: 'x',
      timestamp: 'y',
    });
    await stage.redis.rpush(stage.key('wait'), 'bad');
    start();
    await runsOf('a', 'work beside damaged jobs');
    await until(async () => (await stage.redis.llen(stage.key('wait'))) === 0, { what: 'all are taken' });
    await runsOf('b', 'work of others beside damaged jobs');
  });
});
