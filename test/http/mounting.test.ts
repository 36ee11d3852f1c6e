import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createGzip, type Gzip } from 'node:zlib';
import express from 'express';
import fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { Hono } from 'hono';
import { describe, expect, test } from 'vitest';
import { createApp, nodeListener } from '../../src/http/api/index.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { ANA, startApi } from './harness.ts';

/** How docs/how-to/mounting.md mounts the app at `/inspector`. Each answers requests over real HTTP. */
const FRAMEWORKS: Record<string, (troupe: Troupe) => Promise<{ url: string } & AsyncDisposable>> = {
  'Express 5': async (troupe) => {
    const server = express();
    server.use('/inspector', nodeListener(createApp(troupe)));
    server.use(express.json());
    server.get('/', (_, response) => void response.send('of the other app'));
    return listen(createServer(server));
  },
  'Express 5 behind parsers of bodies': async (troupe) => {
    const server = express();
    server.use(express.json(), express.text(), express.urlencoded());
    server.use('/inspector', nodeListener(createApp(troupe)));
    server.get('/', (_, response) => void response.send('of the other app'));
    return listen(createServer(server));
  },
  'a router of Express': async (troupe) => {
    const server = express();
    const router = express.Router();
    router.use('/inspector', nodeListener(createApp(troupe)));
    server.use('/', router);
    server.get('/', (_, response) => void response.send('of the other app'));
    return listen(createServer(server));
  },
  'Fastify 5': async (troupe) => {
    const server = fastify();
    server.get('/', () => 'of the other app');
    await server.register((scope) => {
      const answer = nodeListener(createApp(troupe, { basePath: '/inspector' }));
      scope.removeAllContentTypeParsers();
      scope.addContentTypeParser('*', (_request, _body, done) => done(null));
      scope.all('/inspector', (request, reply) => answer(request.raw, reply.hijack().raw));
      scope.all('/inspector/*', (request, reply) => answer(request.raw, reply.hijack().raw));
      return Promise.resolve();
    });
    await server.listen({ port: 0, host: '127.0.0.1' });
    const { port } = server.server.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: () => server.close() };
  },
  'Fastify 5 with its parsers of bodies': async (troupe) => {
    const server = fastify();
    server.get('/', () => 'of the other app');
    const answer = nodeListener(createApp(troupe, { basePath: '/inspector' }));
    const handle = (request: FastifyRequest, reply: FastifyReply) =>
      answer(Object.assign(request.raw, { body: request.body }), reply.hijack().raw);
    server.all('/inspector', handle);
    server.all('/inspector/*', handle);
    await server.listen({ port: 0, host: '127.0.0.1' });
    const { port } = server.server.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: () => server.close() };
  },
  Hono: async (troupe) => {
    const server = new Hono().get('/', (context) => context.text('of the other app'));
    server.route('/inspector', createApp(troupe));
    return listen(createServer(nodeListener(server)));
  },
  'a route handler of Next.js, which drops content codings and compresses by itself': (troupe) =>
    aroundFetch(troupe, ({ status, headers, body }, accepted) => {
      const kept = new Headers(headers);
      for (const name of ['content-length', 'content-encoding', 'transfer-encoding']) kept.delete(name);
      if (!body || !accepted.includes('gzip') || isLeftAlone(kept))
        return new Response(body, { status, headers: kept });
      kept.set('content-encoding', 'gzip');
      return new Response(body.pipeThrough(new CompressionStream('gzip')), { status, headers: kept });
    }),
  'a Worker, which compresses what is marked as compressed': (troupe) =>
    aroundFetch(troupe, ({ status, headers, body }) => {
      const isMarked = headers.get('content-encoding') === 'gzip';
      const sent = isMarked && body ? body.pipeThrough(new CompressionStream('gzip')) : body;
      return new Response(sent, { status, headers });
    }),
  'Bun or Deno, which give a handler another second parameter': (troupe) =>
    aroundFetch(troupe, (response) => response, { remoteAddr: { hostname: '127.0.0.1', port: 1 } }),
  'Express behind a middleware that compresses in large blocks': async (troupe) => {
    const server = express();
    server.use(compressInBlocks);
    server.use('/inspector', nodeListener(createApp(troupe)));
    server.get('/', (_, response) => void response.type('text').send('of the other app'));
    return listen(createServer(server));
  },
};

/** A server that calls `createApp(…).fetch`, and sends what `send` makes of the answer. */
async function aroundFetch(
  troupe: Troupe,
  send: (answer: Response, accepted: string) => Response,
  second?: object,
): Promise<{ url: string } & AsyncDisposable> {
  const { fetch } = createApp(troupe, { basePath: '/inspector' });
  const outer = new Hono().get('/', (context) => context.text('of the other app'));
  outer.all('*', async ({ req }) => send(await fetch(req.raw, second), req.header('accept-encoding') ?? ''));
  return listen(createServer(nodeListener(outer)));
}

/** RFC 9111: `no-transform` forbids it. Streams would else come when they are over. */
function isLeftAlone(headers: Headers): boolean {
  return headers.get('cache-control')?.includes('no-transform') === true;
}

/** As `compression` of Express does, which leaves alone what is compressed already. */
function compressInBlocks(_request: IncomingMessage, response: ServerResponse, next: () => void): void {
  const writeHead = response.writeHead.bind(response);
  const write = response.write.bind(response) as (bytes?: Buffer) => boolean;
  const end = response.end.bind(response) as (bytes?: Buffer) => ServerResponse;
  let gzip: Gzip | null | undefined;
  const open = () => {
    if (gzip !== undefined) return gzip;
    const isDone = response.hasHeader('content-encoding');
    gzip =
      isDone || String(response.getHeader('cache-control')).includes('no-transform') ? null : createGzip();
    gzip?.on('data', (bytes: Buffer) => write(bytes));
    gzip?.on('end', () => end());
    return gzip;
  };
  Object.assign(response, {
    writeHead(status: number, headers: Record<string, string> = {}) {
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      if (open()) {
        response.setHeader('content-encoding', 'gzip');
        response.removeHeader('content-length');
      }
      return writeHead(status);
    },
    write: (bytes: Buffer) => (open() ?? { write }).write(bytes),
    end: (bytes?: Buffer) => {
      if (!response.headersSent) response.writeHead(response.statusCode);
      return gzip ? gzip.end(bytes) : end(bytes);
    },
  });
  next();
}

describe.each(Object.keys(FRAMEWORKS))('mounted in %s', (name) => {
  test('page, API, writes and streams work below the path', async () => {
    await using api = await startApi();
    await using server = await open(name, api.troupe);
    const page = async (path: string) => {
      const response = await fetch(`${server.url}${path}`, { headers: { accept: 'text/html' } });
      return /<base href="([^"]*)"/.exec(await response.text())?.[1];
    };
    expect(await page('/inspector')).toBe('/inspector/');
    expect(await page('/inspector/')).toBe('/inspector/');
    expect(await page('/inspector/c/plan?tab=prompt')).toBe('/inspector/');
    expect(await (await fetch(`${server.url}/`)).text()).toBe('of the other app');
    expect(await jsonOf(`${server.url}/inspector/api/agents`)).toMatchObject({
      agents: [{ id: 'echo' }, {}],
    });
    expect(await jsonOf(`${server.url}/inspector/api/openapi.json`)).toMatchObject({
      servers: [{ url: '/inspector' }],
    });
    const script = /<script[^>]* src="\.\/([^"]+)"/.exec(
      await (await fetch(`${server.url}/inspector`, { headers: { accept: 'text/html' } })).text(),
    )?.[1];
    const loaded = await fetch(`${server.url}/inspector/${script}`);
    expect(loaded.headers.get('content-type')).toContain('javascript');
    expect(await loaded.text()).toContain('import');
    const events = `${server.url}/inspector/api/conversations/c/events`;
    const sent = await fetch(events, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ author: ANA, to: ['echo'], content: 'hello' }),
    });
    expect(sent.status).toBe(201);
    const stop = new AbortController();
    const stream = await fetch(`${server.url}/inspector/api/events?conversation=c&after=0`, {
      signal: stop.signal,
    });
    expect(await readUntil(stream, 'answer 1')).toContain('answer 1');
    stop.abort();
  });
});

test.each(['basePath', 'a mount in Hono'])(
  'with %s paths and methods are those below the mount',
  async (how) => {
    await using api = await startApi();
    const app =
      how === 'basePath'
        ? createApp(api.troupe, { basePath: '/inspector' })
        : new Hono().route('/inspector', createApp(api.troupe));
    const ask = async (method: string, path: string) => {
      const answer = await app.request(path, { method });
      const text = await answer.text();
      const { error } = (text.startsWith('{') ? JSON.parse(text) : {}) as { error?: { code: string } };
      return [answer.status, answer.headers.get('allow'), error?.code];
    };
    expect(await ask('GET', '/inspector/api/agents')).toEqual([200, null, undefined]);
    expect(await ask('POST', '/inspector/api/agents')).toEqual([405, 'GET, HEAD', 'method_refused']);
    expect(await ask('POST', '/inspector/x/api/agents')).toEqual([
      404,
      null,
      how === 'basePath' ? 'route_unknown' : undefined,
    ]);
    expect(await ask('GET', '/inspector/api/nope')).toEqual([404, null, 'route_unknown']);
    if (how === 'basePath')
      expect(await ask('PATCH', '/inspector/healthz')).toEqual([405, 'GET, HEAD', 'method_refused']);
  },
);

test('a path that ends like one of the API is unknown for every method', async () => {
  await using api = await startApi();
  for (const method of ['GET', 'POST']) {
    const { status, body } = await api.get('/x/api/agents', { method });
    expect([method, status]).toEqual([method, 404]);
    expect(body).toMatchObject({ error: { code: 'route_unknown' } });
  }
});

test('a body that another parser has read and kept is refused, and not waited for', async () => {
  await using api = await startApi();
  const server = express();
  server.use((request, _, next) => void request.resume().on('end', next));
  server.use('/inspector', nodeListener(createApp(api.troupe)));
  await using running = await listen(createServer(server));
  const answer = await fetch(`${running.url}/inspector/api/conversations/c/events`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ author: ANA, content: 'hello' }),
  });
  expect(answer.status).toBe(400);
  const message = expect.stringContaining('a parser of the server around Troupe has read it') as string;
  expect(await answer.json()).toMatchObject({ error: { code: 'event_invalid', message } });
});

test('a parsed body has the limits of any other', async () => {
  await using api = await startApi();
  const server = express();
  server.use(express.json({ limit: '5mb' }));
  server.use('/inspector', nodeListener(createApp(api.troupe)));
  await using running = await listen(createServer(server));
  const answer = await fetch(`${running.url}/inspector/api/conversations/c/events`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ author: ANA, content: 'x'.repeat(2_000_000) }),
  });
  expect(answer.status).toBe(413);
  expect(await answer.json()).toMatchObject({ error: { code: 'event_too_large' } });
});

test('a request cannot give the page a base of another host', async () => {
  await using api = await startApi();
  const server = express();
  server.use('/:team', nodeListener(createApp(api.troupe)));
  await using running = await listen(createServer(server));
  const response = await fetch(`${running.url}/%22%3E%3Cscript%3E/`, { headers: { accept: 'text/html' } });
  expect(await response.text()).toContain('<base href="/"');
});

function open(name: string, troupe: Troupe): Promise<{ url: string } & AsyncDisposable> {
  const start = FRAMEWORKS[name];
  if (!start) throw new Error(`no framework ${name}`);
  return start(troupe);
}

async function listen(server: Server): Promise<{ url: string } & AsyncDisposable> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function jsonOf(url: string): Promise<unknown> {
  return (await fetch(url)).json();
}

/** Reads a stream until it has said `text`. */
async function readUntil(response: Response, text: string): Promise<string> {
  let read = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    read += decoder.decode(chunk as Uint8Array, { stream: true });
    if (read.includes(text)) break;
  }
  return read;
}
