import { request } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { serveHttp } from '../../src/http/api/index.ts';
import { ANA, startApi } from './harness.ts';

const PATH = '/api/conversations/c1/events';
const MESSAGE = { author: ANA, content: 'x' };

test.each([
  'evil.example',
  'evil.example:4600',
  '127.0.0.1.evil.example',
  '10.0.0.5',
  'localhost.evil',
  'evillocalhost',
])('a request under the name %s is refused', async (host) => {
  await using api = await startApi();
  const { status, body } = await api.get('/api/conversations', { headers: { host } });
  expect(status).toBe(403);
  expect(body).toMatchObject({ error: { code: 'host_refused' } });
});

test.each(['127.0.0.1:4600', 'localhost', '[::1]:4600', 'LOCALHOST:1', 'troupe.internal:80'])(
  'a request under the name %s is answered',
  async (host) => {
    await using api = await startApi({ allowedHosts: ['troupe.internal'] });
    expect((await api.get('/api/conversations', { headers: { host } })).status).toBe(200);
  },
);

test.each(['http://evil.example', 'http://localhost:9999', 'null'])(
  'a page of %s may not write',
  async (origin) => {
    await using api = await startApi({ writeToken: 'w1' });
    const headers = { host: 'localhost:4600', origin, 'x-troupe-token': 'w1' };
    const { status, body } = await api.post(PATH, MESSAGE, headers);
    expect(status).toBe(403);
    expect(body).toMatchObject({ error: { code: 'origin_refused' } });
    expect(await api.troupe.conversations()).toEqual([]);
    const own = { ...headers, origin: 'http://localhost:4600' };
    expect((await api.post(PATH, MESSAGE, own)).status).toBe(201);
  },
);

test('a server with a token requires it of every request, under any host name', async () => {
  await using api = await startApi({ token: 's3cret' });
  for (const authorization of [undefined, 'Bearer wrong!', 'Bearer s3cret2', 's3cret']) {
    const headers = authorization === undefined ? {} : { authorization };
    const { status, body, headers: said } = await api.get('/api/conversations', { headers });
    expect([status, body]).toMatchObject([401, { error: { code: 'token_required' } }]);
    expect(said.get('www-authenticate')).toBe(
      `Bearer realm="troupe"${authorization === undefined ? '' : ', error="invalid_token"'}`,
    );
  }
  const headers = { authorization: 'Bearer s3cret', host: 'troupe.example' };
  expect((await api.get('/api/conversations', { headers })).status).toBe(200);
});

test('an oversized body is refused over a real connection while it is being sent', async () => {
  await using api = await startApi();
  const server = await serveHttp(api.app, { port: 0 });
  const call = request(`${server.url}/api/commands`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
  });
  const answered = new Promise<[number | undefined, string]>((resolve, reject) => {
    call.on('error', reject);
    call.on('response', (response) => {
      readText(response).then((body) => resolve([response.statusCode, body]), reject);
    });
  });
  // The request never ends: the answer must come before its end.
  for (let n = 0; n < 20; n++) call.write(' '.repeat(65_536));
  const [status, body] = await answered;
  expect(status).toBe(413);
  expect(body).toContain('event_too_large');
  call.on('error', () => {});
  call.destroy();
  await server.close();
});
