import { Command } from 'commander';
import { afterEach, expect, test, vi } from 'vitest';
import { addAccessCommands } from '../../src/cli/program-access.ts';
import { workplace } from './harness.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

/** `troupe keys …` in this process; returns what it printed. */
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
  try {
    await program.parseAsync(['keys', ...args], { from: 'user' });
  } finally {
    write.mockRestore();
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

test('a key that was made on a data directory opens the server that runs there next', async () => {
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
  const told = await place.run(['ls', '--url', url, '--json'], { env: { TROUPE_KEY: secret } });
  expect(told.json).toEqual({ conversations: [] });
  // Nobody is named with `--as`: whoever the key speaks for.
  const sent = await place.run(['send', 'c', 'Hello', '--url', url, '--json'], {
    env: { TROUPE_KEY: secret },
  });
  expect(sent.json).toMatchObject({ event: { author: { kind: 'user', id: 'ana', name: 'Ana' } } });
  const asBen = ['send', 'c', 'Hello', '--as', 'Ben', '--url', url, '--json'];
  const other = await place.run(asBen, { env: { TROUPE_KEY: secret } });
  expect(other.json).toMatchObject({ error: { message: expect.stringContaining('nobody else') } });
  const stranger = await place.run(['ls', '--url', url, '--json']);
  expect(stranger.json).toMatchObject({ error: { message: expect.stringContaining('TROUPE_KEY') } });
  expect(dev.err()).not.toContain(secret.slice(17));
  await dev[Symbol.asyncDispose]();
});

test('keys of a running server are made, rotated and revoked, of any tenant', async () => {
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
  await keys('revoke', id, ...at);
  expect([await whoami(secret), await whoami(next.secret)]).toEqual([401, 401]);
  expect(await keys('ls', ...at)).toContain('revoked');
  expect(await keysJson('ls', '--url', dev.url)).toEqual({ keys: [] });
  await expect(keys('revoke', 'nobodys', ...at)).rejects.toThrow(/no key "nobodys"/);
});

test.each([
  [['create', 'x', '--scopes', 'root'], /Scopes are/],
  [['create', 'x', '--expires', 'soon'], /number with s, m, h or d/],
  [['create', 'x', '--expires', '0d'], /open nothing/],
  [['create', 'x', '--author', 'ana'], /KIND:ID/],
])('%j is refused, and no key is made', async (args, why) => {
  using place = workplace();
  const data = `${place.dir}/.troupe`;
  vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  await expect(keys(...args, '--data', data)).rejects.toThrow(why);
  expect(await keysJson('ls', '--data', place.dir)).toEqual({ keys: [] });
});
