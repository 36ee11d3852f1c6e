import { expect, test } from 'vitest';
import { createApp } from '../../src/http/api/index.ts';
import { ANA, startApi } from './harness.ts';

const SHOP = 'https://shop.example';
const cors = [SHOP, 'http://localhost:5173'];
const message = { author: ANA, to: ['echo'], content: 'hello' };
const preflight = (origin: string) => ({
  method: 'OPTIONS',
  headers: {
    origin,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,content-type',
  },
});

test('a listed origin passes the preflight without a credential, and only it', async () => {
  await using api = await startApi({ cors, token: 't'.repeat(32), keyless: 'refused' });
  const allowed = await api.app.request('/api/conversations/c/events', preflight(SHOP));
  expect(allowed.status).toBe(204);
  expect(allowed.headers.get('access-control-allow-origin')).toBe(SHOP);
  expect(allowed.headers.get('access-control-allow-headers')).toContain('authorization');
  expect(allowed.headers.get('access-control-allow-methods')).toContain('POST');
  expect(allowed.headers.get('access-control-allow-credentials')).toBeNull();
  for (const origin of ['https://evil.example', `${SHOP}.evil.example`, 'http://shop.example', 'null']) {
    const refused = await api.app.request('/api/conversations/c/events', preflight(origin));
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(refused.headers.get('access-control-allow-origin')).toBeNull();
    expect(refused.headers.get('vary')).toContain('origin');
  }
});

test('a page may send and read every header that the API uses, and only methods that it has', async () => {
  await using api = await startApi({ cors });
  const { headers } = await api.app.request('/api/charts', preflight(SHOP));
  expect(headers.get('access-control-allow-methods')).toBe('GET,HEAD,POST,DELETE');
  // A tag can be read, so it can be sent back.
  expect(headers.get('access-control-allow-headers')).toContain('if-none-match');
  const charts = await api.get('/api/charts', { headers: { origin: SHOP } });
  expect(charts.headers.get('access-control-expose-headers')).toContain('etag');
  const again = { origin: SHOP, 'if-none-match': charts.headers.get('etag') ?? '' };
  const unchanged = await api.app.request('/api/charts', { headers: again });
  expect([unchanged.status, unchanged.headers.get('access-control-allow-origin')]).toEqual([304, SHOP]);
  const refused = await api.get('/api/charts', { method: 'PATCH', headers: { origin: SHOP } });
  expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  expect(refused.headers.get('access-control-expose-headers')).toContain('allow');
});

test('without the setting no origin is allowed', async () => {
  await using api = await startApi();
  const answer = await api.app.request('/api/agents', { headers: { origin: SHOP } });
  expect(answer.status).toBe(403);
  expect(answer.headers.get('access-control-allow-origin')).toBeNull();
  expect(
    (await api.app.request('/api/agents', preflight(SHOP))).headers.get('access-control-allow-origin'),
  ).toBe(null);
});

test('a page of a listed origin writes and reads; refusals and errors are readable too', async () => {
  await using api = await startApi({ cors });
  const from = (origin: string) => ({ origin, 'sec-fetch-site': 'cross-site' });
  expect((await api.post('/api/conversations/c/events', message, from(SHOP))).status).toBe(201);
  expect((await api.post('/api/conversations/c/events', message, from('https://evil.example'))).status).toBe(
    403,
  );
  const missing = await api.get('/api/nope', { headers: from(SHOP) });
  expect([missing.status, missing.headers.get('access-control-allow-origin')]).toEqual([404, SHOP]);
  const wrong = await api.post('/api/conversations/c/events', { content: 3 }, from(SHOP));
  expect([wrong.status, wrong.headers.get('access-control-allow-origin')]).toEqual([400, SHOP]);
});

test('a page of a listed origin follows the event stream', async () => {
  await using api = await startApi({ cors });
  const stop = new AbortController();
  const stream = await api.app.request('/api/events?conversation=c', {
    headers: { origin: SHOP },
    signal: stop.signal,
  });
  expect(stream.status).toBe(200);
  expect(stream.headers.get('content-type')).toContain('text/event-stream');
  expect(stream.headers.get('access-control-allow-origin')).toBe(SHOP);
  await stream.body?.cancel();
  stop.abort();
});

test('the document of the page, which has the write token, is for no other origin', async () => {
  await using api = await startApi({ cors });
  const page = await api.app.request('/', { headers: { accept: 'text/html', origin: SHOP } });
  expect(page.headers.get('access-control-allow-origin')).toBeNull();
});

test.each(['*', 'https://shop.example/', 'https://shop.example/app', 'shop.example', 'null'])(
  'the origin %s is refused at the start',
  async (origin) => {
    await using api = await startApi();
    expect(() => createApp(api.troupe, { cors: [origin] })).toThrow(/cors\.0: write an origin/);
  },
);
