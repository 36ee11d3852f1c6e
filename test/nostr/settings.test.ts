import { expect, test } from 'vitest';
import { HighWater } from '../../src/nostr/high-water.ts';
import { NostrSettings } from '../../src/nostr/settings.ts';
import { memoryNotes } from '../../src/notes.ts';

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
    overlapMs: 600_000,
    insecure: false,
    limits: { maxEventBytes: 131_072, verificationsPerSecond: 100, perAuthorPerSecond: 5 },
    keys: {},
  });
});

test.each([
  [{ relays: [] }, /relays/],
  [{ relays: ['ws://relay.example'] }, /relays\.0: ws:\/\/relay\.example is not encrypted/],
  [{ relays: ['ws://127.0.0.1.example'] }, /not encrypted/],
  [{ relays: ['ws://localhost@relay.example'] }, /not encrypted/],
  [{ relays: ['https://relay.example'] }, /relays/],
  [{ relays: ['wss://a.example', 'wss://a.example'] }, /relays\.1: .* is named twice/],
  [{ relays: Array.from({ length: 17 }, (_, n) => `wss://${n}.example`) }, /relays/],
  [{ relays: ['wss://a.example'], people: ['ana'] }, /people\.0: a person is a pubkey or an npub/],
  [{ relays: ['wss://a.example'], strangers: 'trust' }, /strangers/],
  [{ relays: ['wss://a.example'], keys: { coder: 'nsec1…' } }, /keys\.coder/],
  [{ relays: ['wss://a.example'], kind: [1] }, /kind/],
])('%j is refused', (input, problem) => {
  expect(problemsOf(input).join('\n')).toMatch(problem);
});

test('a relay without TLS is only let through where that is said', () => {
  expect(problemsOf({ relays: ['ws://relay.example'], insecure: true })).toEqual([]);
});

test('the mark stays before what is pending, never goes back, and is never ahead of our clock', async () => {
  const notes = memoryNotes();
  const mark = new HighWater(notes, 'wss://a.example');
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

  const other = new HighWater(notes, 'wss://a.example');
  expect(await other.load()).toBe(1_000);
  other.reach(900, 2_000);
  await other.save();
  expect(await new HighWater(notes, 'wss://a.example').load()).toBe(1_000);
  expect(await new HighWater(notes, 'wss://b.example').load()).toBeNull();
});
