import { expect, test } from 'vitest';
import { ANA, startApi } from './harness.ts';

const PATH = '/api/conversations/c1/events';
const MESSAGE = { author: ANA, content: 'x' };
const OWN = { host: '127.0.0.1:4600', origin: 'http://127.0.0.1:4600' };
const HTML = { accept: 'text/html' };

/** The token of the page, read from the document as the page reads it. */
async function tokenOf(app: { request(path: string, init: RequestInit): Response | Promise<Response> }) {
  const html = await (await app.request('/', { headers: HTML })).text();
  return /<meta name="troupe-token" content="([^"]*)"/.exec(html)?.[1] ?? '';
}

function modeOf(html: string): string | undefined {
  return /<meta name="troupe-mode" content="([^"]*)"/.exec(html)?.[1];
}

const WEB = new URL('../../web/', import.meta.url).pathname;

test('a browser can write only with the token of its page', async () => {
  await using api = await startApi({ web: WEB });
  const token = await tokenOf(api.app);
  expect(token).toMatch(/^[\w-]{32}$/);
  for (const given of [undefined, '', 'wrong', `${token}x`, token.replace(/.$/, '!')]) {
    const headers = given === undefined ? OWN : { ...OWN, 'x-troupe-token': given };
    const { status, body } = await api.post(PATH, MESSAGE, headers);
    expect([status, body]).toMatchObject([403, { error: { code: 'token_required' } }]);
    expect(JSON.stringify(body)).toMatch(/reload the page/);
    expect(JSON.stringify(body)).not.toContain(token);
  }
  expect(await api.troupe.conversations()).toEqual([]);
  expect((await api.post(PATH, MESSAGE, { ...OWN, 'x-troupe-token': token })).status).toBe(201);
});

test('without a served page no page can write, whatever token it sends', async () => {
  await using api = await startApi();
  for (const given of [undefined, '', 'undefined', 'w1']) {
    const headers = given === undefined ? OWN : { ...OWN, 'x-troupe-token': given };
    const { status, body } = await api.post(PATH, MESSAGE, headers);
    expect([status, body]).toMatchObject([403, { error: { code: 'token_required' } }]);
  }
  expect(await api.troupe.conversations()).toEqual([]);
});

test('every start has a new token', async () => {
  await using one = await startApi({ web: WEB });
  await using two = await startApi({ web: WEB });
  expect(await tokenOf(one.app)).not.toBe(await tokenOf(two.app));
});

test('programs need neither Origin nor token to write', async () => {
  await using api = await startApi({ web: WEB });
  expect((await api.post(PATH, MESSAGE, { host: '127.0.0.1:4600' })).status).toBe(201);
});

test.each([
  ['DELETE', '/api/conversations/c1?exported=none'],
  ['POST', '/api/commands'],
  ['POST', '/api/import'],
  ['PUT', '/api/nope'],
])('%s %s of a browser needs the token, too', async (method, path) => {
  await using api = await startApi({ web: WEB });
  await api.troupe.send('c1', MESSAGE);
  const { status, body } = await api.get(path, { method, headers: OWN });
  expect([status, body]).toMatchObject([403, { error: { code: 'token_required' } }]);
});

test('the token does not help a foreign page', async () => {
  await using api = await startApi({ web: WEB });
  const token = await tokenOf(api.app);
  for (const headers of [
    { ...OWN, origin: 'http://evil.example', 'x-troupe-token': token },
    { ...OWN, 'sec-fetch-site': 'cross-site', 'x-troupe-token': token },
    { host: OWN.host, 'sec-fetch-site': 'cross-site' },
  ]) {
    const { status, body } = await api.post(PATH, MESSAGE, headers);
    expect([status, body]).toMatchObject([403, { error: { code: 'origin_refused' } }]);
  }
});

test.each([
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'same-site' },
  { origin: 'http://evil.example' },
  { origin: 'null' },
])(
  'a foreign page (%o) cannot make this server search: the duration would reveal what the log contains',
  async (from) => {
    await using api = await startApi({ web: WEB });
    const { host } = OWN;
    for (const path of ['/api/search?q=x&limit=1', '/api/conversations/c1/export', '/api/events']) {
      const { status, body } = await api.get(path, { headers: { host, ...from } });
      expect([status, body]).toMatchObject([403, { error: { code: 'origin_refused' } }]);
    }
    for (const site of ['same-origin', 'none']) {
      const own = { host, 'sec-fetch-site': site };
      expect((await api.get('/api/search?q=x', { headers: own })).status).toBe(200);
    }
    expect((await api.get('/', { headers: { ...HTML, host, ...from } })).status).toBe(200);
  },
);

test('under a foreign host name the document, which has the token, is refused', async () => {
  await using api = await startApi({ web: WEB });
  const { status, body } = await api.get('/', { headers: { ...HTML, host: 'evil.example' } });
  expect([status, body]).toMatchObject([403, { error: { code: 'host_refused' } }]);
});

test('with a server token the document is public and has no secret; the API is not', async () => {
  await using api = await startApi({ web: WEB, token: 's3cret' });
  const response = await api.app.request('/c/x', { headers: { ...HTML, host: 'troupe.example' } });
  const html = await response.text();
  expect([response.status, modeOf(html)]).toEqual([200, 'token']);
  expect(html).toContain('<meta name="troupe-token" content=""');
  expect(html).not.toContain('s3cret');
  expect((await api.get('/api/agents', { headers: HTML })).status).toBe(401);
  const refused = await api.post(PATH, MESSAGE, { ...OWN, 'x-troupe-token': 's3cret' });
  expect([refused.status, refused.body]).toMatchObject([401, { error: { code: 'token_required' } }]);
  const headers = { ...OWN, authorization: 'Bearer s3cret' };
  expect((await api.post(PATH, MESSAGE, headers)).status).toBe(201);
});

test.each([{}, OWN, { authorization: 'Bearer s3cret' }])(
  'a read-only server refuses writes with %o and allows reads',
  async (headers) => {
    const token = 'authorization' in headers ? 's3cret' : undefined;
    await using api = await startApi({ web: WEB, readOnly: true, token });
    await api.troupe.send('c1', MESSAGE);
    for (const [method, path] of [
      ['POST', PATH],
      ['POST', '/api/commands'],
      ['POST', '/api/import'],
      ['DELETE', '/api/conversations/c1?exported=none'],
      ['PATCH', '/api/conversations/c1'],
    ] as const) {
      const { status, body } = await api.get(path, { method, headers });
      expect([status, body]).toMatchObject([403, { error: { code: 'read_only' } }]);
    }
    expect((await api.get(PATH, { headers })).body).toMatchObject({ head: 1 });
  },
);

test('the page of a read-only server shows that and has no token', async () => {
  await using api = await startApi({ web: WEB, readOnly: true });
  const html = await (await api.app.request('/', { headers: HTML })).text();
  expect(modeOf(html)).toBe('read-only');
  expect(html).toContain('<meta name="troupe-token" content=""');
});
