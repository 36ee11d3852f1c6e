import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { get } from 'node:https';
import { expect, test } from 'vitest';
import { serveHttp } from '../../src/http/api/index.ts';
import { makeCertificate } from '../services/certificate.ts';
import { ANA, startApi } from './harness.ts';

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

test('with a certificate one connection carries the page, writes, and more streams than browsers open connections', async () => {
  await using api = await startApi();
  const server = await serveHttp(api.app, { port: 0, tls });
  const session = connect(server.url, { ca: tls.cert });
  try {
    expect(server.url).toMatch(/^https:/);
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
  } finally {
    session.destroy();
    await server.close();
  }
});

test('pages of other places and unknown names are refused over HTTP/2 as well', async () => {
  await using api = await startApi();
  const server = await serveHttp(api.app, { port: 0, tls });
  const session = connect(server.url, { ca: tls.cert });
  try {
    expect((await ask(session, '/api/agents', { origin: 'https://elsewhere.example' })).status).toBe(403);
    expect((await ask(session, '/api/agents', { ':authority': 'elsewhere.example' })).status).toBe(403);
  } finally {
    session.destroy();
    await server.close();
  }
});

test('clients of HTTP/1.1 are served on the same port', async () => {
  await using api = await startApi();
  const server = await serveHttp(api.app, { port: 0, tls });
  try {
    const [answer] = (await once(get(`${server.url}/api/agents`, { ca: tls.cert }), 'response')) as [
      { statusCode: number; httpVersion: string; resume: () => void },
    ];
    answer.resume();
    expect([answer.statusCode, answer.httpVersion]).toEqual([200, '1.1']);
  } finally {
    await server.close();
  }
});

test('a body that does not come is given up, and an idle connection is closed', async () => {
  await using api = await startApi();
  const timeouts = { headersTimeout: 50, requestTimeout: 50, keepAliveTimeout: 200 };
  const server = await serveHttp(api.app, { port: 0, tls, timeouts });
  const session = connect(server.url, { ca: tls.cert });
  try {
    const stream = session.request({
      ':path': '/api/conversations/order/events',
      ':method': 'POST',
      'content-type': 'application/json',
    });
    stream.on('error', () => {});
    stream.write('{"content":');
    await once(stream, 'close');
    await once(session, 'close');
  } finally {
    await server.close();
  }
});

test('a server that closes ends streams that are open', async () => {
  await using api = await startApi();
  await api.troupe.send('order', { author: ANA, to: [], content: 'Hello' });
  const server = await serveHttp(api.app, { port: 0, tls });
  const session = connect(server.url, { ca: tls.cert });
  session.on('error', () => {});
  const stream = session.request({
    ':path': '/api/conversations/order/events',
    accept: 'text/event-stream',
  });
  stream.on('error', () => {});
  await once(stream, 'data');
  const closed = once(session, 'close');
  await server.close();
  await closed;
});

test('a key of another certificate is refused by name', async () => {
  await using api = await startApi();
  await expect(
    serveHttp(api.app, { port: 0, tls: { cert: tls.cert, key: makeCertificate().key } }),
  ).rejects.toMatchObject({ code: 'config_invalid', message: expect.stringContaining('certificate') });
});
