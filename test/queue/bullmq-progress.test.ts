import { describe, expect, test } from 'vitest';
import { watchProgress } from '../../src/queue/bullmq/bullmq-router.ts';
import { connectRedis } from '../../src/queue/redis/connect-redis.ts';
import { parseRedisUrl } from '../../src/queue/redis/redis-url.ts';
import type { WakeOutcome } from '../../src/queue/router.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { removeKeysAt } from '../support/redis-keys.ts';
import { address, REDIS_URL, redisTest, until } from './bullmq-stage.ts';

const DONE: WakeOutcome = { kind: 'done' };
const ignore = () => {};

describe('the progress watch', () => {
  function watch(facts: { overdue: number | Error; room: boolean; taken: number }) {
    const clock = createFakeClock();
    const ending = new AbortController();
    const done: string[] = [];
    void watchProgress({
      clock,
      signal: ending.signal,
      deafMs: 60_000,
      everyMs: 5_000,
      countOverdue: async () => {
        if (typeof facts.overdue !== 'number') throw facts.overdue;
        return facts.overdue;
      },
      hasRoom: () => facts.room,
      countTaken: () => facts.taken,
      replaceWorker: () => done.push(`replaced at ${clock.monotonic() / 1_000}`),
      onDeaf: () => done.push(`deaf at ${clock.monotonic() / 1_000}`),
    });
    return { clock, done, ending, facts };
  }

  test('replaces the worker after a minute with work and room but no job, and reports it deaf after the next', async () => {
    const { clock, done, ending } = watch({ overdue: 3, room: true, taken: 7 });
    await clock.advance(59_000);
    expect(done).toEqual([]);
    await clock.advance(120_000);
    expect(done).toEqual(['replaced at 60', 'deaf at 120']);
    ending.abort();
    await clock.advance(0);
    expect(clock.sleeping()).toBe(0);
  });

  test('restarts the minute after every job, and then forgets the replacement', async () => {
    const { clock, done, facts } = watch({ overdue: 3, room: true, taken: 0 });
    await clock.advance(61_000);
    facts.taken += 1;
    await clock.advance(50_000);
    facts.taken += 1;
    await clock.advance(50_000);
    expect(done).toEqual(['replaced at 60']);
    await clock.advance(20_000);
    expect(done).toEqual(['replaced at 60', 'replaced at 175']);
  });

  test.each([
    ['nothing waits', { overdue: 0, room: true, taken: 0 }],
    ['there is no room', { overdue: 5, room: false, taken: 0 }],
    ['Redis does not answer', { overdue: new Error('unavailable'), room: true, taken: 0 }],
  ])('does nothing while %s', async (_name, facts) => {
    const { clock, done } = watch(facts);
    await clock.advance(600_000);
    expect(done).toEqual([]);
  });
});

/** A Cluster has one database only. */
function databasesTest(name: string, run: Parameters<typeof redisTest>[1]): void {
  const isCluster = REDIS_URL !== undefined && parseRedisUrl(REDIS_URL).kind === 'cluster';
  if (isCluster) test.skip(`${name} (skipped: a Cluster has one database only)`, () => {});
  else redisTest(name, run);
}

describe('a deaf worker', () => {
  databasesTest('is replaced by one that is not', async (stage) => {
    let made = 0;
    const producer = connectRedis(stage.url, { profile: 'producer', onWarning: ignore });
    const router = stage.open({
      connections: {
        producer,
        // The first worker is connected to a database without wakes.
        connectBlocking: () => {
          made += 1;
          const url = made === 1 ? `${stage.url}/9` : stage.url;
          return connectRedis(url, { profile: 'blocking', onWarning: ignore });
        },
      },
      deafMs: 200,
      deafCheckMs: 50,
    });
    const starts: string[] = [];
    router.start(async ({ agent }) => (starts.push(agent), DONE), { concurrency: 2, onError: ignore });
    await router.wake(address('a'));
    await until(() => starts.length === 1, { what: 'a run by the new worker' });
    expect(made).toBe(2);
    expect(stage.warnings.filter((each) => each.includes('reconnecting'))).toHaveLength(1);
    await router.close();
    producer.disconnect();
    await removeKeysAt(`${stage.url}/9`, `{${stage.prefix}}:*`);
  });

  databasesTest('is reported when its replacement is deaf too', async (stage) => {
    const producer = connectRedis(stage.url, { profile: 'producer', onWarning: ignore });
    let deaf = 0;
    const router = stage.open({
      connections: {
        producer,
        connectBlocking: () => connectRedis(`${stage.url}/9`, { profile: 'blocking', onWarning: ignore }),
      },
      deafMs: 100,
      deafCheckMs: 30,
      onDeaf: () => (deaf += 1),
    });
    router.start(async () => DONE, { concurrency: 2, onError: ignore });
    await router.wake(address('a'));
    await until(() => deaf > 0, { what: 'the report' });
    await router.close();
    producer.disconnect();
    await removeKeysAt(`${stage.url}/9`, `{${stage.prefix}}:*`);
  });
});
