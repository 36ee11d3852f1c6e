import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { startGuarded, withKey } from './access.ts';
import { ANA, type Harness, readStream, startApi } from './harness.ts';

const LONG = 'a page of words about pumps and valves. '.repeat(100);
/** What a server of `node:http` gives the app. */
const ON_NODE = { outgoing: {} };
const EVENTS = '/api/conversations/main/events';

async function answer({ app }: Harness, path: string, accept?: string, init: RequestInit = {}) {
  const headers = { ...(init.headers as object), ...(accept && { 'accept-encoding': accept }) };
  const response = await app.request(path, { ...init, headers }, ON_NODE);
  const bytes = Buffer.from(await response.arrayBuffer());
  const encoding = response.headers.get('content-encoding');
  const plain = encoding === 'br' ? brotliDecompressSync(bytes) : encoding ? gunzipSync(bytes) : bytes;
  const { status } = response;
  return { status, encoding, sent: bytes.length, text: plain.toString(), headers: response.headers };
}

test('long JSON answers are compressed as the client accepts; short ones, streams and downloads are not', async () => {
  await using api = await startApi();
  await api.troupe.send('main', { author: ANA, to: [], content: LONG, replyTo: 'none' as never });
  const plain = await answer(api, EVENTS);
  expect([plain.status, plain.encoding, plain.headers.get('vary')]).toEqual([200, null, 'accept-encoding']);
  const expected = { br: 'br', 'gzip, deflate, br;q=0.5': 'br', 'gzip;q=1, br;q=0': 'gzip' };
  for (const [accept, encoding] of Object.entries(expected)) {
    const got = await answer(api, EVENTS, accept);
    expect([got.status, got.encoding, got.text]).toEqual([200, encoding, plain.text]);
    expect(got.headers.get('vary')).toBe('accept-encoding');
    expect(got.headers.get('content-type')).toContain('application/json');
    expect(got.sent).toBeLessThan(plain.sent / 4);
  }
  const others = ['identity', 'zstd', 'br;q=0, gzip;q=0.0'];
  for (const accept of others) expect((await answer(api, EVENTS, accept)).encoding).toBeNull();
  expect((await answer(api, '/api/whoami', 'br')).encoding).toBeNull();
  expect((await answer(api, EVENTS, 'br', { method: 'HEAD' })).sent).toBe(0);

  const file = await answer(api, '/api/conversations/main/export', 'br');
  expect([file.status, file.encoding]).toEqual([200, null]);
  expect(file.text).toContain(LONG);
  const stream = await api.app.request('/api/events?conversation=main', {
    headers: { 'accept-encoding': 'br' },
  });
  expect(stream.headers.get('content-encoding')).toBeNull();
  const frames = await readStream(stream, (all) => all.length > 0);
  expect(frames).not.toEqual([]);
});

test('without node:http below nothing is compressed: what is around does that, and may drop or repeat codings', async () => {
  await using api = await startApi();
  await api.troupe.send('main', { author: ANA, to: [], content: LONG });
  for (const env of [undefined, {}, { remoteAddr: {} }]) {
    const got = await api.app.request(EVENTS, { headers: { 'accept-encoding': 'br, gzip' } }, env);
    expect(got.headers.get('content-encoding')).toBeNull();
    expect(await got.text()).toContain(LONG);
  }
});

test('the tag of an answer holds however that is compressed', async () => {
  await using api = await startApi();
  const first = await answer(api, '/api/charts', 'br');
  const etag = first.headers.get('etag') ?? '';
  expect([first.encoding, etag.slice(0, 3)]).toEqual(['br', 'W/"']);
  for (const accept of ['br', 'gzip', 'identity']) {
    const again = await answer(api, '/api/charts', accept, { headers: { 'if-none-match': etag } });
    expect([again.status, again.sent, again.headers.get('etag')]).toEqual([304, 0, etag]);
    expect(again.headers.get('vary')).toBe('accept-encoding');
  }
});

test('an answer with a secret is not compressed, however long', async () => {
  await using api = await startGuarded();
  const admin = await withKey(api);
  const issued = await answer(api, '/api/keys', 'br, gzip', {
    method: 'POST',
    headers: { authorization: `Bearer ${admin.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      name: 'reader',
      scopes: ['read'],
      conversations: Array.from({ length: 60 }, (_, n) => `a-conversation-${n}`),
    }),
  });
  expect(issued.sent).toBeGreaterThan(1_024);
  expect([issued.status, issued.encoding]).toEqual([201, null]);
});
