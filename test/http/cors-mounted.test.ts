import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { Hono } from 'hono';
import { expect, test } from 'vitest';
import { createApp, nodeListener } from '../../src/http/api/index.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { startApi } from './harness.ts';

const SHOP = 'https://shop.example';
const cors = [SHOP];

/** Requests to an app below `/inspector`. */
interface Mounted extends AsyncDisposable {
  ask(path: string, init: RequestInit): Promise<Response>;
}

const NOTHING = { [Symbol.asyncDispose]: () => Promise.resolve() };
const MOUNTS: Record<string, (troupe: Troupe) => Promise<Mounted>> = {
  basePath: async (troupe) => {
    const app = createApp(troupe, { cors, basePath: '/inspector' });
    return { ask: async (path, init) => app.request(path, init), ...NOTHING };
  },
  Hono: async (troupe) => {
    const app = new Hono().route('/inspector', createApp(troupe, { cors }));
    return { ask: async (path, init) => app.request(path, init), ...NOTHING };
  },
  Express: async (troupe) => {
    const app = express();
    app.use('/inspector', nodeListener(createApp(troupe, { cors })));
    const server = createServer(app).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    return {
      ask: (path, init) => fetch(`http://127.0.0.1:${port}${path}`, init),
      async [Symbol.asyncDispose]() {
        server.closeAllConnections();
        server.close();
        await once(server, 'close');
      },
    };
  },
};

test.each(Object.keys(MOUNTS))(
  'mounted with %s, preflights, answers and refusals carry the same headers',
  async (how) => {
    await using api = await startApi();
    const open = MOUNTS[how];
    if (!open) throw new Error(`no mount ${how}`);
    await using mounted = await open(api.troupe);
    const preflight = await mounted.ask('/inspector/api/agents', {
      method: 'OPTIONS',
      headers: { origin: SHOP, 'access-control-request-method': 'POST' },
    });
    expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([204, SHOP]);
    const cases = [
      ['GET', '/api/agents', 200],
      ['GET', '/api/conversations/nope', 404],
      ['GET', '/api/conversations/c/snapshot?at=x', 400],
      ['PATCH', '/api/agents', 405],
      ['GET', '/api/nope', 404],
    ] as const;
    for (const [method, path, status] of cases) {
      const answer = await mounted.ask(`/inspector${path}`, { method, headers: { origin: SHOP } });
      await answer.body?.cancel();
      expect([path, answer.status]).toEqual([path, status]);
      expect([path, answer.headers.get('access-control-allow-origin')]).toEqual([path, SHOP]);
      expect(answer.headers.get('vary')?.toLowerCase()).toContain('origin');
      const plain = await mounted.ask(`/inspector${path}`, { method });
      await plain.body?.cancel();
      expect([path, plain.status, plain.headers.get('access-control-allow-origin')]).toEqual([
        path,
        status,
        null,
      ]);
      // Caches must not give this answer to a listed origin.
      expect(plain.headers.get('vary')?.toLowerCase()).toContain('origin');
    }
  },
);
