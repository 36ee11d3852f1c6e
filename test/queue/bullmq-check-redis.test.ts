import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { checkRedis } from '../../src/queue/redis/connect-redis.ts';
import { ownRedisTest } from './bullmq-stage.ts';
import { startOwnRedis } from './own-redis.ts';

const unexpected = (warning: unknown): never => {
  throw new Error(`unexpected warning: ${String(warning)}`);
};

async function refusalOf(url: string, options: { timeoutMs?: number } = {}) {
  const error: unknown = await checkRedis(url, { onWarning: unexpected, ...options }).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(Error);
  const { code, message } = error as Error & { code: string };
  return { code, message };
}

/** A server that answers commands by name; null is no answer. */
async function fakeServer(answer: (command: string) => string | null): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      for (const match of chunk.toString().matchAll(/\*\d+\r\n\$\d+\r\n(\w+)/g)) {
        const reply = answer((match[1] ?? '').toLowerCase());
        if (reply !== null) socket.write(reply);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`;

describe('the check of Redis before the start', () => {
  test('names an unreachable server and what was tried, without the password', async () => {
    // The limit is far longer than this test: the check does not wait for it.
    const { code, message } = await refusalOf('redis://me:s3cret@127.0.0.1:1/2', { timeoutMs: 3_600_000 });
    expect(code).toBe('queue_unavailable');
    expect(message).toMatch(/127\.0\.0\.1:1\/2.*PING.*ECONNREFUSED/);
    expect(message).not.toContain('s3cret');
  });

  test('gives up on a server that accepts a connection and never answers', async () => {
    const url = await fakeServer(() => null);
    const { code, message } = await refusalOf(url, { timeoutMs: 300 });
    expect([code, message]).toEqual(['queue_unavailable', expect.stringContaining('no answer in 0.3 s')]);
  });

  test('refuses an old version', async () => {
    const info = bulk('# Server\r\nredis_version:5.0.14\r\nmaxmemory_policy:noeviction\r\n');
    const url = await fakeServer((command) =>
      command === 'ping' ? '+PONG\r\n' : command === 'info' ? info : '-ERR unknown command\r\n',
    );
    const { code, message } = await refusalOf(url);
    expect([code, message]).toEqual(['server_unsuitable', expect.stringMatching(/5\.0\.14.*6\.2/)]);
  });

  test('takes the policy from INFO if CONFIG is forbidden, and warns if neither has it', async () => {
    const serving = (info: string) =>
      fakeServer((command) =>
        command === 'ping' ? '+PONG\r\n' : command === 'info' ? bulk(info) : '-NOPERM no CONFIG for you\r\n',
      );
    const told = await serving('redis_version:7.2.4\r\nmaxmemory_policy:allkeys-lru\r\n');
    expect((await refusalOf(told)).message).toContain('allkeys-lru');
    const good = await serving('redis_version:7.2.4\r\nmaxmemory_policy:noeviction\r\n');
    expect(await checkRedis(good, { onWarning: unexpected })).toEqual({
      version: '7.2.4',
      policy: 'noeviction',
    });
    const warnings: unknown[] = [];
    const silent = await serving('redis_version:7.2.4\r\n');
    expect(await checkRedis(silent, { onWarning: (warning) => warnings.push(warning) })).toEqual({
      version: '7.2.4',
      policy: null,
    });
    expect(warnings).toEqual([expect.stringContaining('noeviction')]);
  });

  ownRedisTest('refuses a policy that evicts keys, and names the command that fixes it', async () => {
    const { url } = await startOwnRedis(onTestFinished);
    const port = new URL(url).port;
    const redis = new Redis(url);
    onTestFinished(() => redis.disconnect());
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    const { code, message } = await refusalOf(url);
    expect(code).toBe('server_unsuitable');
    const fix = `redis-cli -h 127.0.0.1 -p ${port} CONFIG SET maxmemory-policy noeviction`;
    expect(message).toContain(fix);
    expect(message).toContain('redis.conf');
    await redis.config('SET', 'maxmemory-policy', 'noeviction');
    expect(await checkRedis(url, { onWarning: unexpected })).toMatchObject({ policy: 'noeviction' });
  });

  ownRedisTest('names a refused password', async () => {
    const { url } = await startOwnRedis(onTestFinished);
    const redis = new Redis(url);
    onTestFinished(() => redis.disconnect());
    await redis.config('SET', 'requirepass', 'right');
    const none = await refusalOf(url);
    expect([none.code, none.message]).toEqual(['server_unsuitable', expect.stringContaining('NOAUTH')]);
    const wrong = await refusalOf(url.replace('//', '//:wr0ng@'));
    expect([wrong.code, wrong.message]).toEqual(['server_unsuitable', expect.stringContaining('WRONGPASS')]);
    expect(wrong.message).not.toContain('wr0ng');
  });
});
