import { Command } from 'commander';
import { afterEach, expect, test, vi } from 'vitest';
import { addAccessCommands } from '../../src/cli/program.ts';
import { workplace } from './harness.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

/** `troupe keys …` in this process; returns its output. */
async function keys(...args: string[]): Promise<string> {
  const program = new Command().exitOverride();
  addAccessCommands(program, (command) =>
    command
      .option('--url <url>', 'a running server (or TROUPE_URL)')
      .option('--data <dir>', 'else this data directory (default: .troupe)')
      .option('--agents <file>', 'and this agents file')
      .option('--json', 'machine-readable output'),
  );
  let out = '';
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    out += String(text);
    return true;
  });
  const hint = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  try {
    await program.parseAsync(['keys', ...args], { from: 'user' });
  } finally {
    write.mockRestore();
    hint.mockRestore();
  }
  return out;
}

interface Printed {
  key: { id: string };
  secret: string;
}

async function keysJson(...args: string[]): Promise<Printed> {
  return JSON.parse(await keys(...args, '--json')) as Printed;
}

test('a key created in a data directory is valid for the next server there', async () => {
  using place = workplace();
  const data = `${place.dir}/.troupe`;
  const out = await keys(
    'create',
    'bot',
    '--data',
    data,
    '--scopes',
    'read,write',
    '--author',
    'user:ana:Ana',
  );
  const [secret = ''] = out.split('\n');
  expect(secret).toMatch(/^trp_/);
  expect(await keys('ls', '--data', data)).not.toContain(secret.slice(17));
  const dev = await place.start(['dev', '--port', '0', '--host', '0.0.0.0']);
  const url = String(dev.ready['url']);
  expect((await fetch(`${url}/api/whoami`)).status).toBe(401);
  const answer = await fetch(`${url}/api/whoami`, { headers: { authorization: `Bearer ${secret}` } });
  expect(await answer.json()).toMatchObject({
    scopes: ['read', 'write'],
    author: { id: 'ana', name: 'Ana' },
  });
  const ran = await place.call(['ls', '--url', url, '--json'], { env: { TROUPE_KEY: secret } });
  expect(ran.json).toMatchObject({ conversations: [], unread: 0 });
  // Without `--as`, the author is the one that the key is bound to.
  const sent = await place.call(['send', 'c', 'Hello', '--url', url, '--json'], {
    env: { TROUPE_KEY: secret },
  });
  expect(sent.json).toMatchObject({ event: { author: { kind: 'user', id: 'ana', name: 'Ana' } } });
  const asBen = ['send', 'c', 'Hello', '--as', 'Ben', '--url', url, '--json'];
  const other = await place.call(asBen, { env: { TROUPE_KEY: secret } });
  expect(other.json).toMatchObject({ error: { message: expect.stringContaining('may only write as') } });
  const beyond = await place.call(['keys', 'ls', '--url', url, '--json'], { env: { TROUPE_KEY: secret } });
  expect(beyond.json).toMatchObject({
    error: {
      code: 'command_refused',
      data: { status: 403, refused: 'scope_missing', scope: 'admin' },
    },
  });
  const stranger = await place.call(['ls', '--url', url, '--json']);
  expect(stranger.json).toMatchObject({ error: { message: expect.stringContaining('TROUPE_KEY') } });
  expect(dev.err()).not.toContain(secret.slice(17));
  await dev[Symbol.asyncDispose]();
});

test('keys of any tenant of a running server can be created, rotated and revoked', async () => {
  using place = workplace();
  await using dev = await place.dev();
  const at = ['--url', dev.url, '--tenant', 'acme'];
  const { key, secret } = await keysJson('create', 'x', ...at, '--conversations', 'a,b*', '--expires', '1h');
  const { id } = key;
  expect(key).toMatchObject({ tenant: 'acme', conversations: ['a', 'b*'], scopes: ['read', 'write'] });
  const whoami = async (text: string) =>
    (await fetch(`${dev.url}/api/whoami`, { headers: { authorization: `Bearer ${text}` } })).status;
  expect(await whoami(secret)).toBe(200);
  const next = await keysJson('rotate', id, ...at, '--grace', '1h');
  expect([await whoami(secret), await whoami(next.secret)]).toEqual([200, 200]);
  expect(await keys('ls', ...at)).toMatch(/until \S+ \S+, old secret until /);
  await keys('revoke', id, ...at);
  expect([await whoami(secret), await whoami(next.secret)]).toEqual([401, 401]);
  expect(await keys('ls', ...at)).toContain('revoked');
  expect(await keysJson('ls', '--url', dev.url)).toEqual({ keys: [] });
  await expect(keys('revoke', 'nobodys', ...at)).rejects.toThrow(/no valid key "nobodys"/);
});

test('a revocation lists the keys and webhooks that the key created and that stay valid', async () => {
  using place = workplace();
  await using dev = await place.dev();
  const scopes = ['--scopes', 'read,write,admin'];
  const { key, secret } = await keysJson('create', 'ops', '--url', dev.url, ...scopes);
  const asked = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
    const response = await fetch(dev.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    return (await response.json()) as { key: { id: string }; webhook: { id: string } };
  };
  const { key: child } = await asked('/api/keys', { name: 'child', scopes: ['read'] });
  const { webhook } = await asked('/api/webhooks', { url: 'https://example.org/', on: ['*'] });
  expect(child).toMatchObject({ createdBy: `key:${key.id}` });
  const { key: elsewhere } = await asked('/api/keys', { name: 'x', scopes: ['read'], tenant: 'acme' });
  const output = await keys('revoke', key.id, '--url', dev.url);
  expect(output).toContain(`keys it created are still active: ${child.id}`);
  expect(output).toContain(`webhooks it created are still active: ${webhook.id}`);
  // Other tenants are not searched; the output says so and where to look.
  expect(output).toMatch(/in every tenant; only default was checked/);
  expect(output).toContain(`"createdBy":"key:${key.id}" with "troupe keys ls --tenant ID --json"`);
  const inAcme = await keys('ls', '--url', dev.url, '--tenant', 'acme', '--json');
  expect(JSON.parse(inAcme)).toMatchObject({
    keys: [{ id: elsewhere.id, createdBy: `key:${key.id}`, revokedAt: null }],
  });
  expect(await keys('revoke', child.id, '--url', dev.url)).not.toContain('every tenant');
  const again = JSON.parse(await keys('revoke', key.id, '--url', dev.url, '--json')) as object;
  expect(again).toMatchObject({
    key: { id: key.id },
    keys: [],
    webhooks: [webhook.id],
    lookedIn: 'default',
    reach: 'all tenants',
  });
});

test('stdout has only the secret, for use in a variable; notes are on stderr', async () => {
  using place = workplace();
  const made = await place.call(['keys', 'create', 'web']);
  expect(made.out).toMatch(/^trp_\S+\n$/);
  expect(made.err).toMatch(/^This is key \w+ of tenant default\. .*not shown again\.\n$/);
  const id = made.out.split('_')[1] ?? '';
  const rotated = await place.call(['keys', 'rotate', id]);
  expect([rotated.out, rotated.err]).toEqual([expect.stringMatching(/^trp_\S+\n$/), made.err]);
  const hook = await place.call(['webhooks', 'create', 'https://example.org/', '--on', 'message']);
  expect(hook.out).toMatch(/^whsec_\S+\n$/);
  const hookId = /wh_\w+/.exec(hook.err)?.[0] ?? '';
  expect(hook.err).toContain('not shown again');
  const signed = await place.call(['webhooks', 'rotate', hookId]);
  expect([signed.out, signed.err]).toEqual([expect.stringMatching(/^whsec_\S+\n$/), hook.err]);
});

test.each([
  ['TROUPE_KEY', 'trp_canary\nThis is key 1.'],
  ['TROUPE_TOKEN', 'two canary-words'],
  ['TROUPE_KEY', 'canary–with-a-dash'],
])('a %s that is not one word is refused by its name, and is not shown', async (variable, value) => {
  using place = workplace();
  const args = ['ls', '--url', 'http://127.0.0.1:9', '--json'];
  const { code, out, err, json } = await place.call(args, { env: { [variable]: value } });
  expect([code, json]).toMatchObject([1, { error: { code: 'config_invalid', data: { variable } } }]);
  expect(out + err).not.toContain('canary');
});

test.each([
  [['create', 'x', '--scopes', 'root'], /Scopes are/],
  [['create', 'x', '--expires', 'soon'], /number with s, m, h or d/],
  [['create', 'x', '--expires', '0d'], /never be valid/],
  [['create', 'x', '--author', 'ana'], /KIND:ID/],
])('%j is refused, and no key is made', async (args, why) => {
  using place = workplace();
  const data = `${place.dir}/.troupe`;
  vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  await expect(keys(...args, '--data', data)).rejects.toThrow(why);
  expect(await keysJson('ls', '--data', place.dir)).toEqual({ keys: [] });
});
