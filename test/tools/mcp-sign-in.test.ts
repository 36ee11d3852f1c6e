import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLocalJWKSet, exportJWK, jwtVerify } from 'jose';
import { expect, test } from 'vitest';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import { type FakeIssuer, startFakeIssuer } from '../support/fake-issuer.ts';
import { startMcpHttpServer } from '../support/mcp-http-server.ts';
import { caller, mcpRoom } from './mcp-stage.ts';

type McpServers = NonNullable<TroupeInput['mcpServers']>;

const ENV = { SECRET: 'hush-hush' };
const SUM = caller('ana', ['web/*'], { sum: ['web__add', { a: 2, b: 3 }] });

function signIn(issuer: FakeIssuer) {
  return { issuer: issuer.url, clientId: 'crew', clientSecretEnv: 'SECRET' };
}

function guardedServer(issuer: FakeIssuer, more: { metadataUrl?: string } = {}) {
  const accepts = (authorization: string | undefined) => issuer.isCurrent(authorization);
  return startMcpHttpServer(0, { accepts, issuer: issuer.url, ...more });
}

/** The warning about a server without which the troupe has started. */
async function refusal(mcpServers: McpServers, env: Record<string, string> = ENV): Promise<string> {
  await using room = await mcpRoom({ agents: [SUM], mcpServers }, { env });
  expect(room.warnings).toHaveLength(1);
  expect(room.troupe.agents[0]?.tools).toEqual(['read_artifact']);
  return room.warnings[0] ?? '';
}

test('a server gets a token that the client obtains with its secret', async () => {
  await using issuer = await startFakeIssuer();
  await using web = await guardedServer(issuer);
  const oauth = { ...signIn(issuer), scope: 'tools:call' };
  await using room = await mcpRoom(
    { agents: [SUM], mcpServers: { web: { url: web.url, oauth } } },
    { env: ENV },
  );
  expect(await room.call('ana', 'sum')).toEqual({ outcome: 'done', content: '5' });
  expect(issuer.requests).toEqual([
    {
      form: { grant_type: 'client_credentials', scope: 'tools:call', resource: web.url },
      authorization: `Basic ${Buffer.from('crew:hush-hush').toString('base64')}`,
    },
  ]);
  const sent = new Set(web.headers.map(({ authorization }) => authorization));
  expect(sent).toEqual(new Set([undefined, 'Bearer token-1']));
});

test('a token that has expired is renewed, and the call is made once', async () => {
  await using issuer = await startFakeIssuer();
  await using web = await guardedServer(issuer);
  const mcpServers = { web: { url: web.url, oauth: signIn(issuer) } };
  await using room = await mcpRoom({ agents: [SUM], mcpServers }, { env: ENV });
  issuer.expire();
  expect(await room.call('ana', 'sum')).toEqual({ outcome: 'done', content: '5' });
  expect(issuer.requests).toHaveLength(2);
  expect(web.trace.filter((line) => line.startsWith('call'))).toHaveLength(1);
});

test('a new session uses the token of the one before', async () => {
  await using issuer = await startFakeIssuer();
  await using web = await guardedServer(issuer);
  const mcpServers = { web: { url: web.url, oauth: signIn(issuer) } };
  await using room = await mcpRoom({ agents: [SUM], mcpServers }, { env: ENV });
  web.forget();
  expect(await room.call('ana', 'sum')).toEqual({ outcome: 'done', content: '5' });
  expect(web.trace.filter((line) => line === 'session begins')).toHaveLength(2);
  expect(issuer.requests).toHaveLength(1);
});

test('a private key signs an assertion for the issuer, also if its variable holds it in one line', async () => {
  await using issuer = await startFakeIssuer();
  await using web = await guardedServer(issuer);
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const oauth = { issuer: issuer.url, clientId: 'crew', privateKeyEnv: 'KEY', algorithm: 'ES256' as const };
  await using room = await mcpRoom(
    { agents: [SUM], mcpServers: { web: { url: web.url, oauth } } },
    { env: { KEY: pem.trim().replaceAll('\n', '\\n') } },
  );
  expect(await room.call('ana', 'sum')).toEqual({ outcome: 'done', content: '5' });
  const [{ form, authorization } = { form: {} as Record<string, string>, authorization: '' }] =
    issuer.requests;
  expect(authorization).toBeUndefined();
  expect(form).toMatchObject({
    grant_type: 'client_credentials',
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
  });
  const keys = createLocalJWKSet({ keys: [await exportJWK(publicKey)] });
  const { payload } = await jwtVerify(form['client_assertion'] ?? '', keys, { audience: issuer.url });
  expect(payload).toMatchObject({ iss: 'crew', sub: 'crew' });
});

test('a client that the issuer refuses is told with what to check, without the secret', async () => {
  const refuses = { error: 'invalid_client', error_description: 'no such client with hush-hush' };
  await using issuer = await startFakeIssuer({ refuses });
  await using web = await guardedServer(issuer);
  expect(await refusal({ web: { url: web.url, oauth: signIn(issuer) } })).toContain(
    'mcpServers.web: it cannot be used: sign-in: the authorization server refused it (invalid_client: no such client with [SECRET]); check oauth.clientId, SECRET and oauth.scope',
  );
});

test('a token that the server does not take is told', async () => {
  await using issuer = await startFakeIssuer();
  await using web = await startMcpHttpServer(0, { accepts: () => false, issuer: issuer.url });
  expect(await refusal({ web: { url: web.url, oauth: signIn(issuer) } })).toContain(
    'mcpServers.web: it cannot be used: sign-in: it refused a token that was just issued; check oauth.scope',
  );
  expect(issuer.requests).toHaveLength(1);
});

test('a server that asks for a sign-in where none is set says what to add', async () => {
  await using issuer = await startFakeIssuer();
  await using web = await guardedServer(issuer);
  expect(await refusal({ web: { url: web.url } })).toContain(
    'mcpServers.web: it cannot be used: it asks for a sign-in (401): give it "oauth", or a header with "headersEnv"',
  );
  expect(issuer.paths).toEqual([]);
});

test('the credentials go to no other issuer that a server names', async () => {
  await using issuer = await startFakeIssuer();
  await using thief = await startFakeIssuer();
  await using web = await startMcpHttpServer(0, { accepts: () => false, issuer: thief.url });
  const oauth = { ...signIn(issuer), allow: [thief.url.replace('http://', '')] };
  expect(await refusal({ web: { url: web.url, oauth } })).toContain(
    `sign-in: it names another authorization server (${thief.url}) than oauth.issuer`,
  );
  expect([...thief.requests, ...issuer.requests]).toEqual([]);
});

test('headers of the settings go to the server alone, and not to its issuer', async () => {
  const seen: unknown[] = [];
  await using issuer = await startFakeIssuer({}, (headers) => seen.push(headers['x-key']));
  await using web = await guardedServer(issuer);
  const server = { url: web.url, oauth: signIn(issuer), headersEnv: { 'X-Key': 'KEY' } };
  const env = { ...ENV, KEY: 'of-the-server' };
  await using _room = await mcpRoom({ agents: [SUM], mcpServers: { web: server } }, { env });
  expect(new Set(web.headers.map((headers) => headers['x-key']))).toEqual(new Set(['of-the-server']));
  expect(new Set(seen)).toEqual(new Set([undefined]));
});

const METADATA = 'http://169.254.169.254/latest/meta-data/';
const NOT_REACHED = '169.254.169.254 is not fetched:';

test('a server that names an internal host for its metadata is refused', async () => {
  await using issuer = await startFakeIssuer();
  await using web = await guardedServer(issuer, { metadataUrl: METADATA });
  const message = await refusal({ web: { url: web.url, oauth: signIn(issuer) } });
  expect(message).toContain(`${NOT_REACHED} it is not on the allow list`);
  expect(message).toContain('only those in "oauth.allow" are reached');
  expect(issuer.requests).toEqual([]);
});

test('an issuer that names an internal host for its tokens is refused', async () => {
  await using inner = await startFakeIssuer();
  await using issuer = await startFakeIssuer({ tokenEndpoint: `${inner.url}/token` });
  await using web = await guardedServer(issuer);
  const oauth = signIn(issuer);
  expect(await refusal({ web: { url: web.url, oauth } })).toMatch(
    /127\.0\.0\.1 is not fetched: port \d+ is not allowed/,
  );
  expect(inner.paths).toEqual([]);
});

test('an issuer that redirects to an internal host is refused', async () => {
  await using issuer = await startFakeIssuer({ redirectsTo: METADATA });
  await using web = await guardedServer(issuer);
  expect(await refusal({ web: { url: web.url, oauth: signIn(issuer) } })).toContain(
    `${issuer.url} is not followed: it redirects to another origin, http://169.254.169.254`,
  );
});

test('metadata without end are given up', async () => {
  await using issuer = await startFakeIssuer({ isEndless: true });
  await using web = await guardedServer(issuer);
  expect(await refusal({ web: { url: web.url, oauth: signIn(issuer) } })).toContain(
    'a message is over the maximum size of 10485760 bytes',
  );
});

test('a server that redirects to an internal host is refused, and its headers go nowhere', async () => {
  await using inner = await startMcpHttpServer();
  for (const location of [METADATA, inner.url]) {
    const server = createServer((_, response) => response.writeHead(307, { location }).end());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const web = { url: `${origin}/mcp`, headersEnv: { 'X-Key': 'SECRET' } };
    expect(await refusal({ web })).toContain(
      `mcpServers.web: it cannot be used: ${origin} is not followed: it redirects to another origin, ${new URL(location).origin}`,
    );
    await new Promise((resolve) => server.close(resolve));
  }
  expect(inner.headers).toEqual([]);
});
