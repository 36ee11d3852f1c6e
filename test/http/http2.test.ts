import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { get } from 'node:https';
import { expect, test } from 'vitest';
import { serveHttp } from '../../src/http/api/index.ts';
import { makeCertificate } from '../services/certificate.ts';
import { ANA, type Harness, startApi } from './harness.ts';

const tls = makeCertificate();

/** Status and body of one request on an open connection. */
async function ask(
  session: ClientHttp2Session,
  path: string,
  { body, ...headers }: { body?: string; [name: string]: string | undefined } = {},
): Promise<{ status: number; text: string }> {
  const stream = session.request({
    ':path': path,
    ':method': body === undefined ? 'GET' : 'POST',
    ...headers,
  });
  stream.end(body);
  const [answer] = (await once(stream, 'response')) as [{ ':status': number }];
  let text = '';
  for await (const chunk of stream.setEncoding('utf8')) text += String(chunk);
  return { status: answer[':status'], text };
}

interface Served extends AsyncDisposable {
  api: Harness;
  url: string;
  /** An open connection of HTTP/2. */
  session: ClientHttp2Session;
  /** Ends the server as a process does. */
  close(): Promise<void>;
}

async function serve(
  timeouts: NonNullable<Parameters<typeof serveHttp>[1]['timeouts']> = {},
): Promise<Served> {
  const api = await startApi();
  const server = await serveHttp(api.app, { port: 0, tls, timeouts });
  const session = connect(server.url, { ca: tls.cert });
  // A server that ends may reset it.
  session.on('error', () => {});
  let closed: Promise<void> | null = null;
  const close = () => (closed ??= server.close());
  return {
    api,
    url: server.url,
    session,
    close,
    async [Symbol.asyncDispose]() {
      session.destroy();
      await close();
      await api[Symbol.asyncDispose]();
    },
  };
}

test('with a certificate one connection carries the page, writes, and more streams than browsers open connections', async () => {
  await using served = await serve();
  const { session } = served;
  expect(served.url).toMatch(/^https:/);
  expect((await ask(session, '/api/agents')).status).toBe(200);
  const sent = await ask(session, '/api/conversations/order/events', {
    body: JSON.stringify({ author: ANA, to: [], content: 'Where is it?' }),
    'content-type': 'application/json',
  });
  expect(sent).toMatchObject({ status: 201 });
  const streams = Array.from({ length: 20 }, () =>
    session.request({ ':path': '/api/conversations/order/events', accept: 'text/event-stream' }),
  );
  const firsts = await Promise.all(streams.map((stream) => once(stream.setEncoding('utf8'), 'data')));
  for (const [first] of firsts) expect(first).toContain('Where is it?');
  for (const stream of streams) stream.close();
  expect((await ask(session, '/api/agents')).status).toBe(200);
});

test('pages of other places and unknown names are refused over HTTP/2 as well', async () => {
  await using served = await serve();
  const { session } = served;
  expect((await ask(session, '/api/agents', { origin: 'https://elsewhere.example' })).status).toBe(403);
  expect((await ask(session, '/api/agents', { ':authority': 'elsewhere.example' })).status).toBe(403);
});

test('clients of HTTP/1.1 are served on the same port', async () => {
  await using served = await serve();
  const [answer] = (await once(get(`${served.url}/api/agents`, { ca: tls.cert }), 'response')) as [
    { statusCode: number; httpVersion: string; resume: () => void },
  ];
  answer.resume();
  expect([answer.statusCode, answer.httpVersion]).toEqual([200, '1.1']);
});

test('a body that does not come is given up, and an idle connection is closed', async () => {
  await using served = await serve({ headersTimeout: 50, requestTimeout: 50, keepAliveTimeout: 200 });
  const stream = served.session.request({
    ':path': '/api/conversations/order/events',
    ':method': 'POST',
    'content-type': 'application/json',
  });
  stream.on('error', () => {});
  stream.write('{"content":');
  await once(stream, 'close');
  await once(served.session, 'close');
});

test('a server that closes ends streams that are open', async () => {
  await using served = await serve();
  await served.api.troupe.send('order', { author: ANA, to: [], content: 'Hello' });
  const stream = served.session.request({
    ':path': '/api/conversations/order/events',
    accept: 'text/event-stream',
  });
  stream.on('error', () => {});
  const [first] = (await once(stream.setEncoding('utf8'), 'data')) as [string];
  expect(first).toContain('Hello');
  const closed = once(served.session, 'close');
  await served.close();
  await closed;
});

test('a key of another certificate is refused by name', async () => {
  await using api = await startApi();
  await expect(
    serveHttp(api.app, { port: 0, tls: { cert: tls.cert, key: makeCertificate().key } }),
  ).rejects.toMatchObject({ code: 'config_invalid', message: expect.stringContaining('certificate') });
});
