import { expect, test } from 'vitest';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { asker, startGuarded, withKey } from './access.ts';
import { ANA, readStream } from './harness.ts';

const UNKNOWN = {
  error: { code: 'token_required', message: expect.stringContaining('Authorization'), data: {} },
};

test('missing, wrong, revoked, expired and malformed credentials get the same answer', async () => {
  const clock = createFakeClock(Date.now());
  await using api = await startGuarded({ clock, troupe: { clock } });
  const admin = await withKey(api);
  const revoked = await withKey(api);
  await api.troupe.keys.revoke(revoked.id);
  const expired = await withKey(api, { expiresAt: clock.now() + 10 });
  await clock.advance(10);
  const basic = `Basic ${Buffer.from('a:b').toString('base64')}`;
  const answers = await Promise.all(
    [
      undefined,
      'Bearer',
      'Bearer x',
      basic,
      `Bearer ${revoked.secret}`,
      `Bearer ${expired.secret}`,
      `Bearer ${admin.secret.slice(0, -1)}`,
      `Bearer trp_aaaaaaaaaaaa_${'x'.repeat(43)}`,
      admin.secret,
    ].map((authorization) => api.get('/api/whoami', authorization ? { headers: { authorization } } : {})),
  );
  for (const { status, body } of answers) {
    expect(status).toBe(401);
    expect(body).toEqual(UNKNOWN);
    expect(body).toEqual(answers[0]?.body);
  }
  expect((await admin.get('/api/whoami')).status).toBe(200);
});

test('a key is created, identified, rotated and revoked; its secret is in one answer only', async () => {
  await using api = await startGuarded();
  const admin = await withKey(api);
  const made = await admin.post('/api/keys', { name: 'bot', scopes: ['read'], author: ANA });
  expect([made.status, made.headers.get('cache-control')]).toEqual([201, 'no-store']);
  const { secret } = made.body as { secret: string };
  const bot = asker(api, secret);
  expect((await bot.get('/api/whoami')).body).toEqual({
    id: `key:${bot.id}`,
    tenant: 'default',
    scopes: ['read'],
    author: ANA,
    conversations: null,
  });
  const rotated = await admin.post(`/api/keys/${bot.id}/rotate`, { graceMs: 60_000 });
  expect([rotated.status, rotated.headers.get('cache-control')]).toEqual([200, 'no-store']);
  expect(rotated.body).toMatchObject({ key: { id: bot.id, createdBy: `key:${admin.id}` } });
  const next = asker(api, String(rotated.body['secret']));
  expect([(await bot.get('/api/agents')).status, (await next.get('/api/agents')).status]).toEqual([200, 200]);
  const removed = await admin.delete(`/api/keys/${bot.id}`);
  expect([removed.status, removed.body]).toMatchObject([200, { key: { id: bot.id } }]);
  expect([(await bot.get('/api/agents')).status, (await next.get('/api/agents')).status]).toEqual([401, 401]);
  const again = await admin.post(`/api/keys/${bot.id}/rotate`, {});
  expect([again.status, again.body]).toMatchObject([404, { error: { code: 'key_unknown' } }]);
  const list = await admin.get('/api/keys');
  for (const text of [secret, next.secret]) {
    // Does not split at "_": a secret may contain one.
    const words = text.slice(`trp_${bot.id}_`.length);
    expect(words).toHaveLength(43);
    expect(JSON.stringify([list.body, removed.body, again.body, api.errors])).not.toContain(words);
  }
});

test.each([
  ['a scope', { scopes: ['read', 'operate'] }, 403, 'scope_missing'],
  [
    'an author',
    { scopes: ['read'], author: { kind: 'agent', id: 'echo', name: 'echo' } },
    403,
    'author_refused',
  ],
  ['all conversations', { scopes: ['read'], author: ANA }, 404, 'conversation_unknown'],
  ['others', { scopes: ['read'], author: ANA, conversations: ['te*'] }, 404, 'conversation_unknown'],
  ['another tenant', { scopes: ['read'], tenant: 'acme', conversations: ['team-a'] }, 403, 'scope_missing'],
])('nobody hands out more than they have: %s', async (_, more, status, code) => {
  await using api = await startGuarded();
  const limited = await withKey(api, {
    scopes: ['read', 'write', 'admin'],
    author: ANA,
    conversations: ['team-*'],
  });
  const refused = await limited.post('/api/keys', { name: 'x', ...more });
  expect([refused.status, refused.body]).toMatchObject([status, { error: { code } }]);
  expect(await api.troupe.keys.list()).toHaveLength(1);
  const given = await limited.post('/api/keys', { name: 'x', scopes: ['read'], conversations: ['team-a'] });
  expect([given.status, given.body]).toMatchObject([201, { key: { author: ANA } }]);
});

test.each([
  ['by another name', { ...ANA, name: 'Admin' }],
  ['by another id', { ...ANA, id: 'u2' }],
  ['of another kind', { ...ANA, kind: 'system' }],
])('who speaks as one author gives no key that speaks as one %s', async (_, author) => {
  await using api = await startGuarded();
  const own = await withKey(api, { author: ANA });
  const other = await withKey(api, { scopes: ['read'], author: author as never });
  for (const [path, body] of [
    ['/api/keys', { name: 'x', scopes: ['read'], author }],
    [`/api/keys/${other.id}/rotate`, {}],
  ] as const) {
    const refused = await own.post(path, body);
    expect([refused.status, refused.body]).toMatchObject([403, { error: { code: 'author_refused' } }]);
  }
  expect(await api.troupe.keys.list()).toHaveLength(2);
});

test('an administrator with a grant sees, rotates and revokes no key that reaches beyond it', async () => {
  await using api = await startGuarded();
  const all = await withKey(api, { scopes: ['read'] });
  const others = await withKey(api, { scopes: ['read'], conversations: ['team-a', 'hall'] });
  const within = await withKey(api, { scopes: ['read'], conversations: ['team-a'] });
  const limited = await withKey(api, { scopes: ['read', 'admin'], conversations: ['team-*'] });
  const { keys } = (await limited.get('/api/keys')).body as { keys: { id: string }[] };
  expect(keys.map(({ id }) => id)).toEqual([within.id, limited.id]);
  const nobodys = await limited.delete('/api/keys/aaaaaaaaaaaa');
  expect(nobodys.status).toBe(404);
  for (const { id } of [all, others]) {
    for (const answer of [
      await limited.post(`/api/keys/${id}/rotate`, {}),
      await limited.delete(`/api/keys/${id}`),
    ]) {
      expect(answer.status).toBe(404);
      expect(JSON.stringify(answer.body).replaceAll(id, 'aaaaaaaaaaaa')).toBe(JSON.stringify(nobodys.body));
    }
  }
  for (const who of [all, others]) expect((await who.get('/api/whoami')).status).toBe(200);
  expect((await limited.post(`/api/keys/${within.id}/rotate`, {})).status).toBe(200);
  expect((await limited.delete(`/api/keys/${within.id}`)).status).toBe(200);
});

test('a caller without "write" can get no key with it, not even by rotation', async () => {
  await using api = await startGuarded();
  const strong = await withKey(api);
  const weak = await withKey(api, { scopes: ['read', 'admin'] });
  const { status, body } = await weak.post(`/api/keys/${strong.id}/rotate`, {});
  expect([status, body]).toMatchObject([403, { error: { code: 'scope_missing', data: { scope: 'write' } } }]);
  expect((await strong.get('/api/whoami')).status).toBe(200);
  expect((await weak.delete(`/api/keys/${strong.id}`)).status).toBe(200);
});

test('a caller that cannot write as agents can get no key that does, not even by rotation', async () => {
  await using api = await startGuarded();
  const author = { kind: 'agent', id: 'echo', name: 'echo' } as const;
  const weak = await withKey(api, { scopes: ['write', 'admin'] });
  const bot = await withKey(api, { scopes: ['write'], author });
  for (const [path, body] of [
    ['/api/keys', { name: 'x', scopes: ['write'], author }],
    [`/api/keys/${bot.id}/rotate`, {}],
  ] as const) {
    const refused = await weak.post(path, body);
    expect([refused.status, refused.body]).toMatchObject([403, { error: { code: 'author_refused' } }]);
  }
  expect(await api.troupe.keys.list()).toHaveLength(2);
  const strong = await withKey(api, { scopes: ['write', 'operate', 'admin'] });
  expect((await strong.post('/api/keys', { name: 'x', scopes: ['write'], author })).status).toBe(201);
  expect((await weak.post('/api/keys', { name: 'x', scopes: ['write'], author: ANA })).status).toBe(201);
});

test('an administrator of a tenant sees only its keys; a server administrator sees all', async () => {
  await using api = await startGuarded();
  const house = await withKey(api);
  const acme = await withKey(api, {}, 'acme');
  expect((await acme.get('/api/keys')).body).toMatchObject({ keys: [{ id: acme.id, tenant: 'acme' }] });
  const nonsense = await acme.delete('/api/keys/aaaaaaaaaaaa');
  const others = await acme.delete(`/api/keys/${house.id}`);
  expect([others.status, JSON.stringify(others.body).replaceAll(house.id, 'aaaaaaaaaaaa')]).toEqual([
    nonsense.status,
    JSON.stringify(nonsense.body),
  ]);
  expect((await acme.get('/api/keys?tenant=default')).status).toBe(403);
  expect((await house.get('/api/keys?tenant=acme')).body).toMatchObject({ keys: [{ id: acme.id }] });
  const made = await house.post('/api/keys', { name: 'x', scopes: ['read'], tenant: 'acme' });
  expect((await asker(api, String(made.body['secret'])).get('/api/whoami')).body).toMatchObject({
    tenant: 'acme',
  });
  expect((await house.delete(`/api/keys/${acme.id}?tenant=acme`)).status).toBe(200);
});

test('guesses of keys are limited before any lookup, and callers with a key are not', async () => {
  const clock = createFakeClock();
  let asked = 0;
  let real: (credential: string) => Promise<unknown> = async () => null;
  await using api = await startGuarded({
    clock,
    authenticate: async (credential) => {
      asked += 1;
      return (await real(credential)) as never;
    },
  });
  real = (credential) => api.troupe.authenticate(credential);
  const known = await withKey(api);
  expect((await known.get('/api/whoami')).status).toBe(200);
  const guess = (n: number) => asker(api, `trp_aaaaaaaaaaaa_${String(n).padStart(43, 'x')}`);
  const statuses: number[] = [];
  for (let n = 0; n < 25; n++) statuses.push((await guess(n).get('/api/whoami')).status);
  expect(statuses).toEqual([...Array(19).fill(401), ...Array(6).fill(429)]);
  expect(asked).toBe(20);
  const { headers, body } = await guess(99).get('/api/whoami');
  expect(headers.get('retry-after')).toBe('1');
  expect(body).toMatchObject({ error: { code: 'rate_limited', data: { limit: 20, retryAfterMs: 50 } } });
  expect((await known.get('/api/whoami')).status).toBe(200);
  await clock.advance(50);
  expect((await guess(100).get('/api/whoami')).status).toBe(401);
});

test('a stream ends within 5 seconds once its key is revoked, and is not resumed', async () => {
  const clock = createFakeClock();
  await using api = await startGuarded({ clock });
  const reader = await withKey(api, { scopes: ['read'] });
  const sender = await withKey(api, { scopes: ['write'] });
  const path = '/api/events?conversation=c1&after=0';
  const response = await api.app.request(path, { headers: reader.headers });
  await sender.post('/api/conversations/c1/events', { author: ANA, content: 'hello' });
  const heard = Promise.withResolvers<void>();
  const all = readStream(response, (frames) => {
    if (frames.some(({ event }) => event === 'event')) heard.resolve();
    return false;
  });
  await heard.promise;
  await api.troupe.keys.revoke(reader.id);
  await clock.advance(5_000);
  await all;
  const resumed = await reader.get(path, { 'last-event-id': '1' });
  expect([resumed.status, resumed.body]).toEqual([401, UNKNOWN]);
});

test('the server token has all rights in the default tenant, beside the keys', async () => {
  await using api = await startGuarded({ token: 's3cret' });
  const acme = await withKey(api, {}, 'acme');
  const server = asker(api, 's3cret');
  expect((await server.get('/api/whoami')).body).toMatchObject({ id: 'server-token', tenant: 'default' });
  expect((await acme.get('/api/whoami')).body).toMatchObject({ tenant: 'acme' });
  expect((await api.get('/api/whoami')).status).toBe(401);
});
