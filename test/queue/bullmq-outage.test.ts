import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, vi } from 'vitest';
import { connectRedis } from '../../src/queue/redis/connect-redis.ts';
import type { WakeOutcome } from '../../src/queue/router.ts';
import { address, openStage, ownRedisTest, redisTest, until } from './bullmq-stage.ts';
import { startOwnRedis } from './own-redis.ts';

const DONE: WakeOutcome = { kind: 'done' };
const A = address('a');
const NOWHERE = 'redis://127.0.0.1:1';
const ignore = () => {};
const isUnavailable = expect.objectContaining({ code: 'queue_unavailable' });

/** Longer than any test: what it ends ends too late. */
const HOUR_MS = 3_600_000;

describe('an outage of Redis', () => {
  ownRedisTest('is noticed, ends without help, and is reported once each time', async () => {
    const server = await startOwnRedis(onTestFinished);
    await using stage = openStage(server.url);
    const router = stage.open();
    const starts: string[] = [];
    router.start(async ({ agent }) => (starts.push(agent), DONE), { concurrency: 2, onError: ignore });
    await router.wake(A);
    await until(() => starts.length === 1, { what: 'a run before' });
    // The job may fail with another error, because it is gone when Redis is back.
    const outages = () => stage.warnings.filter((each) => each.startsWith('redis:'));

    await server.kill();
    await until(() => outages().length === 2, { what: 'warnings of both connections' });
    await expect(router.wake(A)).rejects.toEqual(isUnavailable);
    await expect(router.depth()).rejects.toEqual(isUnavailable);

    await server.start();
    await until(
      async () => {
        await router.wake(address('b')).catch(ignore);
        return starts.includes('b');
      },
      { what: 'a run after' },
    );
    await until(() => outages().length === 4, { what: 'warnings of both connections' });
    expect(outages().filter((each) => each.includes('is unavailable'))).toHaveLength(2);
    expect(outages().filter((each) => each.includes('is back'))).toHaveLength(2);
  });

  ownRedisTest('fails a request at once, before any timeout or attempt to connect', async () => {
    const server = await startOwnRedis(onTestFinished);
    await using stage = openStage(server.url);
    const router = stage.open();
    await router.wake(A);
    Object.assign(stage.producers[0]!.options, { commandTimeout: HOUR_MS, retryStrategy: () => HOUR_MS });
    await server.kill();
    await until(() => stage.warnings.length >= 1, { what: 'the outage' });
    await expect(router.wake(A)).rejects.toEqual(isUnavailable);
  });

  ownRedisTest('fails a request when Redis only hangs, before the connection counts as lost', async () => {
    const server = await startOwnRedis(onTestFinished);
    await using stage = openStage(server.url);
    const router = stage.open();
    await router.wake(A);
    const [producer] = stage.producers;
    if (producer instanceof Redis) producer.stream.setTimeout(0);
    server.pause();
    await expect(router.wake(A)).rejects.toEqual(isUnavailable);
    server.resume();
    await until(
      () =>
        router.wake(A).then(
          () => true,
          () => false,
        ),
      { what: 'it answers again' },
    );
  });

  // Without a server BullMQ's own close never ends.
  ownRedisTest('does not block close, which still waits for handlers', async () => {
    const server = await startOwnRedis(onTestFinished);
    await using stage = openStage(server.url);
    const idle = stage.open();
    const working = stage.open();
    const gate = Promise.withResolvers<void>();
    let started = false;
    let ended = false;
    working.start(
      async () => {
        started = true;
        await gate.promise;
        ended = true;
        return DONE;
      },
      { concurrency: 1, onError: ignore },
    );
    await working.wake(A);
    await until(() => started, { what: 'the run' });
    idle.start(async () => DONE, { concurrency: 1, onError: ignore });
    await idle.depth();
    await server.kill();
    await until(() => stage.warnings.length >= 4, { what: 'all connections have noticed' });

    await idle.close();
    const closed = working.close();
    expect(ended).toBe(false);
    gate.resolve();
    await closed;
    expect(ended).toBe(true);
  });
});

describe('a Redis that was never there', () => {
  redisTest('fails a wake with a code, and a started router still closes', async (stage) => {
    const router = stage.open({ url: NOWHERE });
    router.start(async () => DONE, { concurrency: 1, onError: ignore });
    await expect(router.wake(A)).rejects.toEqual(isUnavailable);
    // Only the first wake waits for the connection: from here on no timer ends.
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    await expect(router.wake(A)).rejects.toEqual(isUnavailable);
    vi.useRealTimers();
    await router.close();
  });

  redisTest('is named without its password', async (stage) => {
    const router = stage.open({ url: 'redis://me:s3cret@127.0.0.1:1' });
    await expect(router.wake(A)).rejects.toThrow('queue');
    expect(stage.warnings[0]).toContain('127.0.0.1:1');
    expect(stage.warnings.join(' ')).not.toContain('s3cret');
    expect(() => stage.open({ url: 'http://me:s3cret@h' })).toThrow(
      expect.objectContaining({ code: 'config_invalid', message: expect.not.stringContaining('s3cret') }),
    );
  });
});

describe('connections', () => {
  redisTest('a router has one; a started router opens two more', async (stage) => {
    const clients = async (name: string) =>
      String(await stage.redis.client('LIST'))
        .split('\n')
        .filter((line) => line.includes(name)).length;
    let made = 0;
    const producer = connectRedis(stage.url, { profile: 'producer', onWarning: ignore });
    const connectBlocking = () => {
      made += 1;
      return connectRedis(stage.url, { profile: 'blocking', onWarning: ignore });
    };
    const router = stage.open({ connections: { producer, connectBlocking } });
    await router.wake(A);
    expect(made).toBe(0);
    let served = false;
    router.start(async () => ((served = true), DONE), { concurrency: 1, onError: ignore });
    await until(() => served, { what: 'the wake' });
    expect(made).toBe(1);
    await until(async () => (await clients(stage.prefix)) === 1, { what: 'the connection that blocks' });
    await router.close();
    await until(async () => (await clients(stage.prefix)) === 0, { what: 'it is gone' });
    expect(await producer.ping()).toBe('PONG');
    producer.disconnect();
  });
});
