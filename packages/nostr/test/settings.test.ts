import { expect, test } from 'vitest';
import { HighWater } from '../src/high-water.ts';
import { NostrSettings } from '../src/settings.ts';
import { memoryKeyValue } from '../../../src/base/key-value.ts';

const problemsOf = (input: unknown) =>
  NostrSettings.safeParse(input).error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ??
  [];

test('a list of relays is enough', () => {
  expect(
    NostrSettings.parse({ relays: ['wss://relay.example', { url: 'ws://127.0.0.1:7777', write: false }] }),
  ).toEqual({
    relays: [
      { url: 'wss://relay.example', read: true, write: true },
      { url: 'ws://127.0.0.1:7777', read: true, write: false },
    ],
    kinds: [1, 11, 1_111],
    strangers: 'store',
    people: [],
    conversationPrefix: 'nostr:',
    operators: [],
    overlapMs: 600_000,
    insecure: false,
    limits: { maxEventBytes: 131_072, verificationsPerSecond: 100, perAuthorPerSecond: 5, answersInARow: 50 },
    keys: {},
  });
});

test.each([
  [{ relays: [] }, /relays/],
  [{ relays: ['ws://relay.example'] }, /relays\.0: ws:\/\/relay\.example is not encrypted/],
  [{ relays: ['ws://127.0.0.1.example'] }, /not encrypted/],
  [{ relays: ['ws://localhost@relay.example'] }, /not encrypted/],
  [{ relays: ['ws://127.0.0.1@relay.example'] }, /not encrypted/],
  [{ relays: ['https://relay.example'] }, /relays/],
  [{ relays: ['wss://a.example', 'wss://a.example'] }, /relays\.1: .* is listed twice/],
  [{ relays: ['wss://a.example', 'wss://A.example:443/'] }, /relays\.1: .* is listed twice/],
  [{ relays: ['wss://a.example/x', { url: 'wss://a.example/y/../x' }] }, /relays\.1: .* is listed twice/],
  [{ relays: Array.from({ length: 17 }, (_, n) => `wss://${n}.example`) }, /relays/],
  [{ relays: ['wss://a.example'], people: ['ana'] }, /people\.0: a person is a pubkey or an npub/],
  [{ relays: ['wss://a.example'], strangers: 'trust' }, /strangers/],
  [{ relays: ['wss://a.example'], keys: { coder: 'nsec1…' } }, /keys\.coder/],
  [
    { relays: ['wss://a.example'], keys: { coder: { env: 'A', bunkerEnv: 'B' } } },
    /keys\.coder: .*must be "stored", \{env: NAME\}.* or \{bunkerEnv: NAME\}/,
  ],
  [{ relays: ['wss://a.example'], kind: [1] }, /kind/],
])('%j is refused', (input, problem) => {
  expect(problemsOf(input).join('\n')).toMatch(problem);
});

test.each([
  ['wss://a.example', 'wss://a.example'],
  ['wss://a.example/', 'wss://a.example'],
  ['wss://A.Example:443', 'wss://a.example'],
  ['wss://a.example/in/', 'wss://a.example/in/'],
  ['wss://a.example/?key=1', 'wss://a.example/?key=1'],
])('the relay %s is normalised to %s', (written, meant) => {
  expect(NostrSettings.parse({ relays: [written] }).relays[0]?.url).toBe(meant);
});

test('the error for a refused relay shows no user, password or query', () => {
  const [plain, safe] = ['ws://u:canary@r.example/in?token=canary', 'wss://u:canary@r.example/?token=canary'];
  expect(problemsOf({ relays: [plain, safe, safe] })).toEqual([
    'relays.0: ws://r.example/in is not encrypted: use wss://, or set insecure',
    'relays.2: wss://r.example is listed twice',
  ]);
});

test('a relay on this machine needs no TLS, even with credentials in its URL', () => {
  const relays = ['ws://user@127.0.0.1', 'ws://user:pass@localhost:7777/in', 'ws://[::1]:7777'];
  expect(problemsOf({ relays })).toEqual([]);
});

test('a relay without TLS is accepted only with insecure', () => {
  expect(problemsOf({ relays: ['ws://relay.example'], insecure: true })).toEqual([]);
});

test('the mark stays before pending events, never moves back and is never ahead of our clock', async () => {
  const keyValue = memoryKeyValue();
  const mark = new HighWater(keyValue, 'wss://a.example');
  expect(await mark.load()).toBeNull();
  mark.reach(100, 1_000);
  expect(mark.value).toBe(100);
  const [first, second] = [mark.begin(150), mark.begin(150)];
  mark.reach(5_000, 1_000);
  expect(mark.value).toBe(149);
  first();
  expect(mark.value).toBe(149);
  second();
  expect(mark.value).toBe(1_000);
  await mark.save();
  mark.begin(10);
  expect(mark.value).toBe(1_000);

  const other = new HighWater(keyValue, 'wss://a.example');
  expect(await other.load()).toBe(1_000);
  other.reach(900, 2_000);
  await other.save();
  expect(await new HighWater(keyValue, 'wss://a.example').load()).toBe(1_000);
  expect(await new HighWater(keyValue, 'wss://b.example').load()).toBeNull();
});

test('a process that is behind does not move the mark of another back', async () => {
  const keyValue = memoryKeyValue();
  const [ahead, behind] = [
    new HighWater(keyValue, 'wss://a.example'),
    new HighWater(keyValue, 'wss://a.example'),
  ];
  await Promise.all([ahead.load(), behind.load()]);
  ahead.reach(1_000, 2_000);
  behind.reach(900, 2_000);
  await ahead.save();
  await behind.save();
  expect(await new HighWater(keyValue, 'wss://a.example').load()).toBe(1_000);
});
