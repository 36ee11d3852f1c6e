import { inspect } from 'node:util';
import { decode, npubEncode, nsecEncode } from 'nostr-tools/nip19';
import { decrypt } from 'nostr-tools/nip49';
import { generateSecretKey, getPublicKey } from 'nostr-tools/pure';
import { expect, test } from 'vitest';
import type { AgentKeys } from '../../../src/library/integrations/nostr.ts';
import { createAgentKeys } from '../src/agent-keys.ts';
import { type KeySource, signersFor } from '../src/agent-signers.ts';
import { memoryKeyValue, type KeyValue } from '../../../src/base/key-value.ts';
import { createFakeClock } from '../../testing/src/fake-clock.ts';
import { problemOf } from './verify-alone.ts';

const PASSPHRASE = 'canary-passphrase';
const clock = createFakeClock();
const TEMPLATE = {
  kind: 1,
  created_at: 1_700_000_000,
  tags: [['p', 'é"\n']],
  content: 'a\tb \u2028 "c" \\ \u{1f600}',
};

/** Cheap scrypt, so that tests are fast. */
function keysOver(keyValue: KeyValue, passphrase: string | undefined = PASSPHRASE): AgentKeys {
  return createAgentKeys({ keyValue, clock, env: { TROUPE_NOSTR_PASSPHRASE: passphrase }, logN: 4 });
}

function signers(
  keyValue: KeyValue,
  agents: { id: string; aliases?: string[]; pubkey: string | null }[],
  sources: Record<string, KeySource> = {},
  env: Record<string, string> = {},
) {
  return signersFor({ agents, sources, keys: keysOver(keyValue), env, clock });
}

/** Everything that can be read in a value, private or not. */
function everythingOf(thing: unknown): string {
  return inspect(thing, { depth: 20, showHidden: true, getters: true });
}

test('a created key signs events that an independent verifier accepts', async () => {
  const keyValue = memoryKeyValue();
  const { pubkey, npub } = await keysOver(keyValue).create('ada');
  expect(npub).toBe(npubEncode(pubkey));
  const opened = await signers(keyValue, [
    { id: 'ada', pubkey: null },
    { id: 'bob', pubkey: null },
  ]);
  expect([...opened.pubkeys]).toEqual([['ada', pubkey]]);
  expect(opened.of('bob')).toBeNull();
  const signed = await opened.of('ada')?.sign(TEMPLATE);
  expect(signed).toEqual({ ...TEMPLATE, pubkey, id: expect.any(String), sig: expect.any(String) });
  expect(problemOf(JSON.parse(JSON.stringify(signed)))).toBeNull();
  expect(problemOf({ ...signed, content: 'other' })).toMatch(/not the hash/);
  expect(problemOf({ ...signed, sig: '0'.repeat(128) })).toMatch(/signature/);
  await opened.close();
  await expect(opened.of('ada')?.sign(TEMPLATE)).rejects.toThrow('closed');
});

test('an agent that was renamed signs with the key of its former id, stored or named in the settings', async () => {
  const keyValue = memoryKeyValue();
  const { pubkey } = await keysOver(keyValue).create('ada');
  const renamed = [{ id: 'countess', aliases: ['ada'], pubkey: null }];
  const opened = await signers(keyValue, renamed);
  expect([...opened.pubkeys]).toEqual([['countess', pubkey]]);
  await opened.close();
  const secret = generateSecretKey();
  const env = { ADA_KEY: nsecEncode(secret) };
  const named = await signers(memoryKeyValue(), renamed, { ada: { env: 'ADA_KEY' } }, env);
  expect([...named.pubkeys]).toEqual([['countess', getPublicKey(secret)]]);
  await named.close();
});

test('the store holds the key encrypted by NIP-49, and a listing only its public part', async () => {
  const keyValue = memoryKeyValue();
  const secret = generateSecretKey();
  const keys = keysOver(keyValue);
  await keys.import('ada', ` ${nsecEncode(secret)}\n`);
  await keys.import('bob', Buffer.from(generateSecretKey()).toString('hex').toUpperCase());
  const stored = (await keyValue.get('nostr/keys')) ?? '';
  const hex = Buffer.from(secret).toString('hex');
  expect(stored).not.toContain(hex);
  const ring = JSON.parse(stored) as Record<string, { ncryptsec: string }>;
  expect(Buffer.from(decrypt(ring['ada']?.ncryptsec ?? '', PASSPHRASE)).toString('hex')).toBe(hex);
  expect(await keys.list()).toEqual([
    {
      agent: 'ada',
      npub: npubEncode(getPublicKey(secret)),
      pubkey: getPublicKey(secret),
      createdAt: '2026-01-01T00:00:00.000Z',
    },
    expect.objectContaining({ agent: 'bob' }),
  ]);
  expect(await keys.export('ada', { confirmed: true })).toBe(nsecEncode(secret));
});

test('a wrong or missing passphrase is reported, and no key is added under it', async () => {
  const keyValue = memoryKeyValue();
  await keysOver(keyValue).create('ada');
  const wrong = keysOver(keyValue, 'other');
  for (const tried of [
    () => wrong.open('ada'),
    () => wrong.export('ada', { confirmed: true }),
    () => wrong.create('bob'),
  ]) {
    await expect(tried()).rejects.toMatchObject({
      code: 'config_invalid',
      message: expect.stringMatching(/@ada.*TROUPE_NOSTR_PASSPHRASE is not the passphrase/),
    });
  }
  await expect(keysOver(keyValue, '').create('bob')).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringMatching(/set TROUPE_NOSTR_PASSPHRASE/),
  });
  expect((await keysOver(keyValue).list()).map(({ agent }) => agent)).toEqual(['ada']);
});

test('an agent has one key, and a key one agent, also when two are created at once', async () => {
  const keyValue = memoryKeyValue();
  const keys = keysOver(keyValue);
  const tries = await Promise.allSettled([
    keys.create('ada'),
    keys.create('ada'),
    keys.create('constructor'),
  ]);
  expect(tries.map(({ status }) => status).sort()).toEqual(['fulfilled', 'fulfilled', 'rejected']);
  const taken = await keys.export('ada', { confirmed: true });
  await expect(keys.import('bob', taken)).rejects.toThrow('this is the key of @ada');
  await expect(keys.remove('bob')).rejects.toMatchObject({ code: 'agent_unknown' });
  await keys.remove('ada');
  await keys.import('bob', taken);
  expect((await keys.list()).map(({ agent }) => agent)).toEqual(['constructor', 'bob']);
});

test.each<[string, { id: string; pubkey: string | null }[], Record<string, KeySource>, RegExp]>([
  [
    'a key that does not match the agents file',
    [{ id: 'ada', pubkey: 'f'.repeat(64) }],
    { ada: { env: 'ADA' } },
    /@ada.*agents file says f{64}/,
  ],
  ['a pubkey without a key', [{ id: 'bob', pubkey: 'f'.repeat(64) }], {}, /@bob.*keys import bob/],
  [
    'a variable that is not set',
    [{ id: 'ada', pubkey: null }],
    { ada: { env: 'NOPE' } },
    /@ada.*NOPE, which is not set/,
  ],
  [
    'one key for two agents',
    [
      { id: 'ada', pubkey: null },
      { id: 'bob', pubkey: null },
    ],
    { ada: { env: 'ADA' }, bob: { env: 'ADA' } },
    /@bob has the same key as @ada/,
  ],
  [
    'a variable without a valid key',
    [{ id: 'ada', pubkey: null }],
    { ada: { env: 'BAD' } },
    /BAD is not a secret key/,
  ],
  [
    'a key beyond the curve',
    [{ id: 'ada', pubkey: null }],
    { ada: { env: 'HIGH' } },
    /HIGH is not a secret key/,
  ],
  [
    'an invalid bunker URL',
    [{ id: 'ada', pubkey: null }],
    { ada: { bunkerEnv: 'BAD' } },
    /BAD is not a bunker URL/,
  ],
])('%s stops the start and names the agent or variable', async (_, agents, sources, message) => {
  const secret = Buffer.from(generateSecretKey()).toString('hex');
  const bad = `${nsecEncode(generateSecretKey()).slice(0, -1)}b`;
  const env = { ADA: secret, BAD: bad, HIGH: 'f'.repeat(64) };
  const thrown: unknown = await signers(memoryKeyValue(), agents, sources, env).catch(
    (error: unknown) => error,
  );
  expect(thrown).toMatchObject({ code: 'config_invalid', message: expect.stringMatching(message) });
  const seen = everythingOf(thrown);
  for (const canary of [secret, bad, PASSPHRASE]) expect(seen).not.toContain(canary);
});

test('a key for an unknown agent is reported before any key is opened', async () => {
  const agents = [{ id: 'ada', pubkey: null }];
  await expect(signers(memoryKeyValue(), agents, { adda: 'stored' })).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining('@adda is named in nostr.keys'),
  });
});

test('no error contains the given secret, and no signer shows its key', async () => {
  const keyValue = memoryKeyValue();
  const secret = generateSecretKey();
  const nsec = nsecEncode(secret);
  const hex = Buffer.from(secret).toString('hex');
  const keys = keysOver(keyValue);
  const swapped = nsec.replace(/.$/, (last) => (last === 'q' ? 'p' : 'q'));
  const thrown = await Promise.all(
    [swapped, `${hex}0`, nsec.slice(0, 30)].map((text) =>
      keys.import('ada', text).catch((error: unknown) => error),
    ),
  );
  await keys.import('ada', nsec);
  thrown.push(await keys.import('bob', nsec).catch((error: unknown) => error));
  const opened = await signers(keyValue, [{ id: 'ada', pubkey: null }]);
  const seen = everythingOf([thrown, keys, opened, opened.of('ada'), await keys.list()]);
  for (const canary of [hex, nsec, swapped, nsec.slice(5, 30), PASSPHRASE])
    expect(seen).not.toContain(canary);
  expect(thrown.every((error) => error instanceof Error)).toBe(true);
  expect(decode(nsec).type).toBe('nsec');
});
