import { expect, test } from 'vitest';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { startGuarded, withKey } from './access.ts';
import { ANA, startApi } from './harness.ts';

const BEN = { kind: 'user', id: 'u2', name: 'Ben' };
const PATH = '/api/conversations/c1/events';

function limited(limit: number) {
  return [429, { error: { code: 'rate_limited', data: { limit, retryAfterMs: expect.any(Number) } } }];
}

test('a caller that exceeds its rate is told when to retry, and others are answered', async () => {
  const clock = createFakeClock();
  await using api = await startGuarded({ clock, traffic: { requestsPerSecond: 2 } });
  const [busy, calm] = [await withKey(api), await withKey(api)];
  const statuses: number[] = [];
  for (let n = 0; n < 8; n++) statuses.push((await busy.get('/api/agents')).status);
  expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 429, 429]);
  const { status, body, headers } = await busy.get('/api/agents');
  expect([status, body]).toMatchObject(limited(2));
  expect(headers.get('retry-after')).toBe('1');
  expect((await calm.get('/api/agents')).status).toBe(200);
  await clock.advance(500);
  expect((await busy.get('/api/agents')).status).toBe(200);
});

test("an author's rate holds whichever key is used, and nothing beyond it is stored", async () => {
  const clock = createFakeClock();
  await using api = await startGuarded({ clock, traffic: { messagesPerSecond: 1 } });
  const [one, two] = [await withKey(api), await withKey(api)];
  for (let n = 0; n < 5; n++) await one.post(PATH, { author: ANA, to: [], content: `${n}` });
  const { status, body } = await two.post(PATH, { author: ANA, to: [], content: 'more' });
  expect([status, body]).toMatchObject(limited(1));
  expect((await two.post(PATH, { author: BEN, to: [], content: 'mine' })).status).toBe(201);
  const { events } = await api.troupe.events('c1');
  expect(JSON.stringify(events)).not.toContain('more');
});

test('refused requests do not use up the rate of others', async () => {
  await using api = await startGuarded({ clock: createFakeClock(), traffic: { messagesPerSecond: 1 } });
  const eve = await withKey(api, {
    scopes: ['write'],
    author: { kind: 'user', id: 'eve', name: 'Eve' },
  });
  const guest = await withKey(api, { scopes: ['write'], conversations: ['own'] });
  const app = await withKey(api);
  for (let n = 0; n < 8; n++) {
    const asAna = { author: ANA, to: [], content: 'not hers' };
    expect((await eve.post(PATH, asAna)).body).toMatchObject({ error: { code: 'author_refused' } });
    expect((await guest.post(PATH, asAna)).body).toMatchObject({ error: { code: 'conversation_unknown' } });
  }
  expect((await app.post(PATH, { author: ANA, to: [], content: 'hers' })).status).toBe(201);
});

test('open streams per caller are limited, and one that ended makes room', async () => {
  await using api = await startGuarded({ traffic: { streams: 2, allStreams: 3 } });
  const [one, two] = [await withKey(api), await withKey(api)];
  const open = (headers: { authorization: string }, method = 'GET') =>
    api.app.request('/api/events', { headers, method });
  const first = await open(one.headers);
  // Nobody reads the body of a HEAD request, so it must not occupy a place.
  for (let n = 0; n < 5; n++) expect((await open(one.headers, 'HEAD')).status).toBe(200);
  expect((await open(one.headers)).status).toBe(200);
  expect((await open(one.headers)).status).toBe(429);
  expect((await open(two.headers)).status).toBe(200);
  expect((await open(two.headers)).status).toBe(429);
  await first.body?.cancel();
  expect((await open(one.headers)).status).toBe(200);
});

test('the one user of this machine is not counted', async () => {
  await using api = await startApi({ traffic: { requestsPerSecond: 1, messagesPerSecond: 1 } });
  for (let n = 0; n < 20; n++)
    expect((await api.post(PATH, { author: ANA, to: [], content: 'x' })).status).toBe(201);
});
