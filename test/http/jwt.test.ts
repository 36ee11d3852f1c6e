import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import {
  type CryptoKey,
  exportJWK,
  exportPKCS8,
  exportSPKI,
  generateKeyPair,
  importPKCS8,
  type JWTPayload,
  SignJWT,
} from 'jose';
import { expect, test } from 'vitest';
import { AccessSettings } from '../../src/library/access/index.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { asker, startGuarded } from './access.ts';
import { ANA, type Harness } from './harness.ts';

const NOW_S = Math.floor(Date.UTC(2026, 0, 1) / 1_000);
const ISSUER = 'https://issuer.example';
const CLAIMS = { iss: ISSUER, aud: 'troupe', sub: 'u1', name: 'Ana', exp: NOW_S + 600 };
const ES = await generateKeyPair('ES256', { extractable: true });
const RSA = await generateKeyPair('RS256', { extractable: true });
const BASE = { issuer: ISSUER, audience: 'troupe' };

function sign(
  claims: JWTPayload,
  {
    alg = 'ES256',
    key = ES.privateKey,
    kid,
  }: { alg?: string; key?: CryptoKey | Uint8Array; kid?: string } = {},
): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg, ...(kid !== undefined && { kid }) }).sign(key);
}

async function start(jwt: object): Promise<Harness> {
  const clock = createFakeClock();
  const { publicKey = await exportSPKI(ES.publicKey), ...more } = jwt as { publicKey?: string };
  const access = { jwt: { ...BASE, ...('jwks' in jwt ? {} : { publicKey }), ...more } };
  return startGuarded({
    clock,
    company: {
      agents: [{ id: 'echo', provider: 'scripted', model: 'test', script: { rules: [{ reply: 'x' }] } }],
      access,
    },
    troupe: { clock },
  });
}

async function statusOf(api: Harness, token: string): Promise<number> {
  return (await asker(api, token).get('/api/whoami')).status;
}

test("a user's token writes as that user, in their tenant, with the scopes of the settings", async () => {
  await using api = await start({ tenant: 'app', claims: { scopes: 'scope', conversations: 'rooms' } });
  const user = asker(api, await sign({ ...CLAIMS, scope: 'read write admin', rooms: ['u1-*'] }));
  expect((await user.get('/api/whoami')).body).toEqual({
    id: 'jwt:u1',
    tenant: 'app',
    scopes: ['read', 'write'],
    author: ANA,
    conversations: ['u1-*'],
  });
  const posted = await user.post('/api/conversations/u1-a/events', { content: 'hello' });
  expect([posted.status, posted.body]).toMatchObject([201, { event: { author: ANA } }]);
  const forged = { author: { kind: 'user', id: 'u2', name: 'Ben' }, content: 'x' };
  expect((await user.post('/api/conversations/u1-a/events', forged)).status).toBe(403);
  expect((await user.post('/api/conversations/u2-a/events', { content: 'x' })).status).toBe(404);
  expect((await api.troupe.forTenant('app').conversations()).map(({ id }) => id)).toEqual(['u1-a']);
});

test.each<[string, JWTPayload, number]>([
  ['of 29 s ago', { ...CLAIMS, exp: NOW_S - 29 }, 200],
  ['that has ended', { ...CLAIMS, exp: NOW_S - 31 }, 401],
  ['that begins in 29 s', { ...CLAIMS, nbf: NOW_S + 29 }, 200],
  ['that begins later', { ...CLAIMS, nbf: NOW_S + 31 }, 401],
  ['without an end', { iss: ISSUER, aud: 'troupe', sub: 'u1' }, 401],
  ['of nobody', { iss: ISSUER, aud: 'troupe', exp: NOW_S + 600 }, 401],
  ['of another issuer', { ...CLAIMS, iss: 'https://evil.example' }, 401],
  ['for others', { ...CLAIMS, aud: 'other' }, 401],
  ['with an empty subject', { ...CLAIMS, sub: '' }, 401],
  ['with a list as its subject', { ...CLAIMS, sub: ['u1'] as never }, 401],
  ['with a number as its subject', { ...CLAIMS, sub: 42 as never }, 401],
  ['with an object as its subject', { ...CLAIMS, sub: { toString: 'u1' } as never }, 401],
  ['with a truth as its subject', { ...CLAIMS, sub: true as never }, 401],
  ['with an endless subject', { ...CLAIMS, sub: 'x'.repeat(129) }, 401],
])('a token %s', async (_, claims, status) => {
  await using api = await start({});
  expect(await statusOf(api, await sign(claims))).toBe(status);
});

test('a token of another key, without a signature, or signed with a public key is refused', async () => {
  await using api = await start({});
  const other = await generateKeyPair('ES256');
  const pem = new TextEncoder().encode(await exportSPKI(ES.publicKey));
  const good = await sign(CLAIMS);
  const [head = '', body = '', signature = ''] = good.split('.');
  const none = Buffer.from('{"alg":"none"}').toString('base64url');
  const others = Buffer.from(JSON.stringify({ ...CLAIMS, sub: 'boss' })).toString('base64url');
  for (const token of [
    await sign(CLAIMS, { key: other.privateKey }),
    await sign(CLAIMS, { alg: 'RS256', key: RSA.privateKey }),
    await sign(CLAIMS, { alg: 'HS256', key: pem }),
    `${none}.${body}.`,
    `${none}.${body}.${signature}`,
    `${head}.${others}.${signature}`,
    `${head}.${body}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`,
    `${good}.x`,
  ])
    expect(await statusOf(api, token)).toBe(401);
  expect(await statusOf(api, good)).toBe(200);
});

test('a key verifies all signatures of its kind', async () => {
  const publicKey = await exportSPKI(RSA.publicKey);
  const pss = await importPKCS8(await exportPKCS8(RSA.privateKey), 'PS256');
  const tokens = [
    await sign(CLAIMS, { alg: 'RS256', key: RSA.privateKey }),
    await sign(CLAIMS, { alg: 'PS256', key: pss }),
  ];
  await using api = await start({ publicKey });
  expect(await Promise.all(tokens.map((token) => statusOf(api, token)))).toEqual([200, 200]);
});

test.each([
  ['a long name is cut', 'n'.repeat(201), 'n'.repeat(200)],
  ['a name of 200 characters is not', 'n'.repeat(200), 'n'.repeat(200)],
  ['one of spaces is none', '  ', 'u1'],
  ['one that is no text is none', ['Ana'], 'u1'],
])('the name that a token gives its author: %s', async (_, name, told) => {
  await using api = await start({});
  const user = asker(api, await sign({ ...CLAIMS, name }));
  expect((await user.get('/api/whoami')).body).toMatchObject({
    author: { kind: 'user', id: 'u1', name: told },
  });
  expect((await user.post('/api/conversations/c1/events', { content: 'hello' })).status).toBe(201);
});

test.each<[string, object, JWTPayload, number]>([
  ['a tenant', { tenant: 'org' }, { org: 'acme' }, 200],
  ['no tenant', { tenant: 'org' }, {}, 401],
  ['a tenant that is none', { tenant: 'org' }, { org: '../x' }, 401],
  ['a tenant that is a list', { tenant: 'org' }, { org: ['acme'] }, 401],
  ['no rooms', { conversations: 'rooms' }, {}, 401],
  ['rooms that are none', { conversations: 'rooms' }, { rooms: ['a*b'] }, 401],
])('where a claim is to say it, a token with %s', async (_, claims, more, status) => {
  await using api = await start({ claims });
  expect(await statusOf(api, await sign({ ...CLAIMS, ...more }))).toBe(status);
});

test.each([
  ['words', 'admin read', ['read']],
  ['a list', ['write', 'read', 'admin'], ['read', 'write']],
  ['a list of other things', [['read'], { read: true }, 1], []],
  ['an object', { read: true }, []],
])('scopes are said with %s, and none beyond the settings is had', async (_, scope, scopes) => {
  await using api = await start({ claims: { scopes: 'scope' } });
  const user = asker(api, await sign({ ...CLAIMS, scope }));
  expect((await user.get('/api/whoami')).body).toMatchObject({ scopes });
});

test('a token without the scopes claim of the settings has no rights', async () => {
  await using api = await start({ claims: { scopes: 'scope' } });
  const user = asker(api, await sign(CLAIMS));
  expect((await user.get('/api/whoami')).body).toMatchObject({ scopes: [] });
  expect((await user.get('/api/agents')).status).toBe(403);
});

test('keys of the issuer are fetched once, and again for an unknown key', async () => {
  let keys = [{ ...(await exportJWK(RSA.publicKey)), kid: 'one', alg: 'RS256' }];
  let fetched = 0;
  let isUp = true;
  const server = createServer((_, response) => {
    fetched += 1;
    response.writeHead(isUp ? 200 : 500, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ keys }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    await using api = await start({ jwks: `http://127.0.0.1:${port}/keys` });
    const token = await sign(CLAIMS, { alg: 'RS256', key: RSA.privateKey, kid: 'one' });
    expect([await statusOf(api, token), await statusOf(api, token), fetched]).toEqual([200, 200, 1]);
    const stray = await sign(CLAIMS, { alg: 'RS256', key: RSA.privateKey, kid: 'two' });
    expect(await statusOf(api, stray)).toBe(401);
    // The issuer is asked only now and then, however many callers use unknown keys.
    expect(fetched).toBeLessThanOrEqual(2);
    isUp = false;
    await using next = await start({ jwks: `http://127.0.0.1:${port}/keys` });
    const answer = await asker(next, token).get('/api/whoami');
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
    isUp = true;
    expect(await statusOf(next, token)).toBe(200);
    keys = [];
  } finally {
    server.close();
  }
});

test('unsafe settings are refused', async () => {
  const publicKey = await exportSPKI(ES.publicKey);
  const { d: _d, ...jwk } = await exportJWK(ES.privateKey);
  expect(AccessSettings.safeParse({ jwt: { ...BASE, publicKey: jwk } }).success).toBe(true);
  for (const wrong of [
    { publicKey: 'no key' },
    { publicKey: await exportJWK(ES.privateKey) },
    { publicKey: await exportPKCS8(ES.privateKey) },
    { publicKey: { kty: 'oct', k: 'c2VjcmV0' } },
    { jwks: 'http://issuer.example/keys' },
    { jwks: 'file:///etc/keys' },
    { publicKey, jwks: 'https://issuer.example/keys' },
    {},
    { publicKey, issuer: '' },
    { publicKey, claims: { tenants: 'x' } },
  ])
    expect([wrong, AccessSettings.safeParse({ jwt: { ...BASE, ...wrong } }).success]).toEqual([wrong, false]);
});
