import { decode, nsecEncode } from 'nostr-tools/nip19';
import { generateSecretKey, getPublicKey } from 'nostr-tools/pure';
import { expect, test } from 'vitest';
import { renderReport } from '../../../src/cli/commands/nostr.ts';
import { workplace } from '../../../test/cli/harness.ts';
import { startRelay } from './relay.ts';
import { startHostileRelay } from './relay-process.ts';

const ENV = { TROUPE_NOSTR_PASSPHRASE: 'canary-passphrase' };

test('keys are created, imported, listed, exported and removed, and no secret is shown unasked', async () => {
  using place = workplace();
  const keys = (args: string[], options: Parameters<typeof place.call>[1] = {}) =>
    place.call(['nostr', 'keys', ...args, '--json'], { env: ENV, ...options });
  const made = await keys(['create', 'planner']);
  expect(made).toMatchObject({ code: 0, json: { agent: 'planner', npub: expect.stringMatching(/^npub1/) } });
  const secret = nsecEncode(generateSecretKey());
  const taken = await keys(['import', 'worker', '--env', 'KEY'], { env: { ...ENV, KEY: secret } });
  const pubkey = getPublicKey(decode(secret).data);
  expect(taken).toMatchObject({ code: 0, json: { agent: 'worker', pubkey } });
  const { json } = await keys(['ls']);
  expect(json).toEqual({ keys: [made.json, taken.json] });
  const refused = await keys(['export', 'worker']);
  expect(refused).toMatchObject({ code: 1, json: { error: { code: 'command_refused' } } });
  const wrong = await keys(['export', 'worker', '--show-secret'], {
    env: { TROUPE_NOSTR_PASSPHRASE: 'other' },
  });
  expect(wrong).toMatchObject({
    code: 1,
    json: { error: { code: 'config_invalid', message: expect.stringMatching(/is not the passphrase/) } },
  });
  expect((await keys(['export', 'worker', '--show-secret'])).json).toEqual({ agent: 'worker', nsec: secret });
  expect((await keys(['rm', 'worker', '--yes'])).code).toBe(0);
  for (const { out, err } of [made, taken, refused, wrong]) {
    expect(out + err).not.toMatch(new RegExp(`${secret}|canary`));
  }
});

test('an unknown agent, an invalid key or a missing passphrase is an error that says what to do', async () => {
  using place = workplace();
  const failed = async (args: string[], options: Parameters<typeof place.call>[1] = { env: ENV }) =>
    (await place.call(['nostr', 'keys', ...args, '--json'], options)).json['error'];
  expect(await failed(['create', 'plannr'])).toMatchObject({
    code: 'agent_unknown',
    message: expect.stringMatching(/Did you mean "planner"/),
  });
  expect(await failed(['create', 'planner'], { env: { TROUPE_NOSTR_PASSPHRASE: '' } })).toMatchObject({
    code: 'config_invalid',
    message: expect.stringMatching(/set TROUPE_NOSTR_PASSPHRASE/),
  });
  const args = ['nostr', 'keys', 'import', 'planner', '--json'];
  const bad = (await place.run(args, { env: ENV, input: 'nsec1canary' })).json['error'];
  expect(bad).toMatchObject({ code: 'config_invalid', message: expect.stringMatching(/not a secret key/) });
  expect(JSON.stringify(bad)).not.toContain('canary');
  expect(await failed(['export', 'planner', '--show-secret'])).toMatchObject({ code: 'agent_unknown' });
});

test('a relay is tested by reading from it and writing to it', async () => {
  using place = workplace();
  await using relay = await startRelay();
  const { code, json, err } = await place.call(['nostr', 'test', relay.url, '--json']);
  expect([code, err]).toEqual([0, '']);
  expect(json).toMatchObject({
    ok: true,
    auth: 'none',
    connectMs: expect.any(Number),
    read: { ok: true, ms: expect.any(Number) },
    write: { ok: true },
  });
  const [[, event]] = (await relay.seen('EVENT')) as [[string, { kind: number }]];
  expect(event.kind).toBe(20_001);
});

test('the test of a relay shows no user, password or query of its URL', async () => {
  using place = workplace();
  await using relay = await startRelay();
  const secret = (url: string) => `${url.replace('://', '://u:canary@')}/?token=canary`;
  for (const [url, shown] of [
    [secret(relay.url), relay.url],
    [secret('ws://127.0.0.1:9'), 'ws://127.0.0.1:9'],
    [secret('http://127.0.0.1:9'), 'http://127.0.0.1:9'],
    ['canary', 'the given text'],
  ] as const)
    for (const json of [['--json'], []]) {
      const { out, err } = await place.call(['nostr', 'test', url, ...json]);
      expect(out + err).toContain(shown);
      expect(out + err).not.toContain('canary');
    }
});

test('a relay that requires a login, refuses or is down is reported as such', async () => {
  using place = workplace();
  await using strict = await startRelay({ auth: true });
  const known = await place.call(['nostr', 'test', strict.url, '--json']);
  expect(known.json).toMatchObject({ ok: true, auth: 'required', write: { ok: true } });
  await using closed = await startHostileRelay({
    ok: { accepted: false, reason: 'blocked: \u001b[31mmembers only' },
  });
  const refused = await place.call(['nostr', 'test', closed.url]);
  expect(refused.code).toBe(1);
  expect(refused.out).toMatch(/write +refused: blocked: .*members only/);
  expect(refused.out).not.toContain('\u001b[31m');
  const absent = await place.call(['nostr', 'test', 'ws://127.0.0.1:9', '--json']);
  expect(absent).toMatchObject({
    code: 1,
    json: { error: { code: 'address_unreachable', message: expect.stringMatching(/nothing listens there/) } },
  });
  const nonsense = await place.call(['nostr', 'test', 'relay.example', '--json']);
  expect(nonsense.json).toMatchObject({
    error: { code: 'config_invalid', message: expect.stringMatching(/wss:/) },
  });
});

test.each([['nostr'], ['nostr', 'keys'], ['nostr', 'keys', 'import'], ['nostr', 'test']])(
  'the help of %s %s %s fits on a screen',
  async (...names) => {
    using place = workplace();
    const { code, out } = await place.call([...names.filter((name) => typeof name === 'string'), '--help']);
    expect(code).toBe(0);
    expect(out.trimEnd().split('\n').length).toBeLessThanOrEqual(24);
    expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(110);
  },
);

test('a relay that says nothing of the test event is not shown as one that refuses', () => {
  const silent = { ok: false, isSilent: true, ms: 10_000, reason: 'no answer within 10000 ms' };
  const well = { ok: true, ms: 3, reason: '' };
  const report = { url: 'ws://relay', connectMs: 1, information: null, auth: 'none' } as const;
  const shown = renderReport({ ...report, read: well, write: silent });
  expect(shown).toMatch(/write +neither acknowledged nor refused: no answer within 10000 ms/);
  expect(renderReport({ ...report, read: silent, write: well })).toMatch(/read +not answered: no answer/);
});
