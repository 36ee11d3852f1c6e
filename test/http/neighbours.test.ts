import { once } from 'node:events';
import { connect } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { createApp, serveHttp } from '../../src/http/index.ts';
import { startGuarded, withKey } from './access.ts';
import { startApi } from './harness.ts';

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
      limits: { triesPerSecond: 1_000 },
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
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: { type: 'minor' }) => void;
  await using api = await startApi();
  const app = createApp(api.troupe);
  const REQUESTS = 2_000;
  const usedAfter = async (requests: number): Promise<number> => {
    for (let n = 0; n < requests; n++) await (await app.request('/healthz')).arrayBuffer();
    collect({ type: 'minor' });
    collect({ type: 'minor' });
    return process.memoryUsage().heapUsed;
  };
  // What the runtime compiles or keeps by chance grows in some rounds, more on a busy machine; what requests leave in each.
  let used = await usedAfter(REQUESTS);
  let least = Infinity;
  for (let round = 0; round < 40 && least >= REQUESTS * 1_000; round++) {
    const after = await usedAfter(REQUESTS);
    least = Math.min(least, after - used);
    used = after;
  }
  expect(least).toBeLessThan(REQUESTS * 1_000);
});
