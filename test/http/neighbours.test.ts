import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { createApp, serveHttp } from '../../src/http/api/index.ts';
import { startGuarded, withKey } from './access.ts';

const run = promisify(execFile);

test.for([
  ['requests that are answered at once', { path: '/api/agents', secret: null, status: '200' }],
  ['refused requests', { path: '/api/none', secret: null, status: '404' }],
  ['requests of unknown callers', { path: '/api/agents', secret: 'wrong', status: '401' }],
] as const)(
  '%s from 64 connections let a request of another tenant in between',
  async ([, { path, secret, status }]) => {
    await using api = await startGuarded();
    const app = createApp(api.troupe, {
      keyless: 'refused',
      authenticate: (credential) => api.troupe.authenticate(credential),
      traffic: { triesPerSecond: 1_000 },
    });
    const server = await serveHttp(app, { port: 0 });
    try {
      const calm = await withKey(api, {}, 'calm');
      const noisy = await withKey(api, {}, 'noisy');
      const connected = async () => {
        const socket = connect(server.port, '127.0.0.1');
        await once(socket, 'connect');
        return async (from: string, key: string) => {
          socket.write(`GET ${from} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\n\r\n`);
          const [answer] = (await once(socket, 'data')) as [Buffer];
          return answer.toString('latin1').slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length);
        };
      };
      const askCalm = await connected();
      const connections = await Promise.all(Array.from({ length: 64 }, connected));
      // Both are known and share the process, and all connections are accepted.
      expect(await askCalm('/api/agents', calm.secret)).toBe('200');
      for (const ask of connections) expect(await ask('/api/agents', noisy.secret)).toBe('200');
      const order: string[] = [];
      const first = Promise.withResolvers<void>();
      const noise = connections.map(async (ask) => {
        expect(await ask(path, secret ?? noisy.secret)).toBe(status);
        order.push('noisy');
        first.resolve();
      });
      await first.promise;
      expect(await askCalm('/api/agents', calm.secret)).toBe('200');
      order.push('calm');
      await Promise.all(noise);
      expect(order.indexOf('calm')).toBeLessThan(32);
    } finally {
      await server.close();
    }
  },
);

test('a small garbage collection takes away what a request left', async () => {
  // On one thread, so that the load of the machine does not decide what V8 collects and compiles when.
  const { stdout } = await run(process.execPath, [
    '--expose-gc',
    '--single-threaded',
    join(import.meta.dirname, 'heap-per-request.ts'),
  ]);
  const rounds = JSON.parse(stdout) as number[];
  // A full collection falls into a round now and then, and one round compiles.
  expect(rounds.toSorted((a, b) => a - b).at(rounds.length / 2)).toBeLessThan(1_000);
});
