import { expect, test } from 'vitest';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { asker, startGuarded, withKey } from './access.ts';
import { ANA, type Harness } from './harness.ts';

const REFUSED = [401, { error: { code: 'token_required' } }];

async function statusesOf(times: number, ask: () => Promise<{ status: number }>): Promise<Set<number>> {
  const statuses = new Set<number>();
  for (let n = 0; n < times; n++) statuses.add((await ask()).status);
  return statuses;
}

test.each(['Basic abc', 'Bearer', 'Bearer ', 'Bearer a, Bearer b', 'trp_x'])(
  'the header "%s" is not taken for the user of this machine, who sends none',
  async (authorization) => {
    await using api = await startGuarded({ keyless: 'local' });
    const { status, body } = await api.get('/api/whoami', { headers: { authorization } });
    expect([status, body]).toMatchObject(REFUSED);
    expect((await api.get('/api/whoami')).body).toMatchObject({ id: 'local' });
  },
);

test('the credential "none" stands for none: the user of this machine, or nobody', async () => {
  const headers = { authorization: 'Bearer none' };
  await using local = await startGuarded({ keyless: 'local' });
  expect((await local.get('/api/whoami', { headers })).body).toMatchObject({ id: 'local' });
  await using closed = await startGuarded();
  const { status, body } = await closed.get('/api/whoami', { headers });
  expect([status, body]).toMatchObject(REFUSED);
});

test('a wrong credential costs a try each time it is sent', async () => {
  await using api = await startGuarded({ clock: createFakeClock() });
  const wrong = asker(api, `trp_${'a'.repeat(12)}_${'b'.repeat(43)}`);
  expect(await statusesOf(25, () => wrong.get('/api/whoami'))).toEqual(new Set([401, 429]));
});

test('a revoked key costs a try each time it is sent', async () => {
  await using api = await startGuarded({ clock: createFakeClock() });
  const key = await withKey(api);
  expect((await key.get('/api/whoami')).status).toBe(200);
  await api.troupe.keys.revoke(key.id);
  expect(await statusesOf(25, () => key.get('/api/whoami'))).toEqual(new Set([401, 429]));
});

test("guessing uses up the tries of the guesser's address only", async () => {
  await using api = await startGuarded({ clock: createFakeClock() });
  const from = (remoteAddress: string) => statusOf(api, remoteAddress);
  expect(await statusesOf(25, () => from('10.0.0.1'))).toEqual(new Set([401, 429]));
  expect((await from('10.0.0.1')).status).toBe(429);
  expect((await from('10.0.0.2')).status).toBe(401);
});

async function statusOf(api: Harness, remoteAddress: string): Promise<Response> {
  const headers = { authorization: 'Bearer guess' };
  return api.app.request('/api/whoami', { headers }, { incoming: { socket: { remoteAddress } } });
}

test('a foreign page may not write, even with a key', async () => {
  await using api = await startGuarded();
  const { headers } = await withKey(api);
  const body = { author: ANA, content: 'x' };
  for (const from of [{ origin: 'http://evil.example' }, { 'sec-fetch-site': 'cross-site' }]) {
    const answered = await api.post('/api/conversations/c1/events', body, { ...headers, ...from });
    expect([answered.status, answered.body]).toMatchObject([403, { error: { code: 'origin_refused' } }]);
  }
});

test('a path that only resembles one of the API is unknown', async () => {
  await using api = await startGuarded();
  const key = await withKey(api);
  const answered = await key.get('//api/conversations/secret');
  expect([answered.status, answered.body]).toMatchObject([404, { error: { code: 'route_unknown' } }]);
});
