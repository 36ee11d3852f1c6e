import {
  naddrEncode,
  neventEncode,
  noteEncode,
  nprofileEncode,
  npubEncode,
  nsecEncode,
} from 'nostr-tools/nip19';
import { expect, test } from 'vitest';
import { addressedBy } from '../src/intake.ts';
import { readReferences, shortNpub } from '../src/nostr-event.ts';
import { cpuMsOf } from '../../../test/support/cpu-ms.ts';

const id = (letter: string) => letter.repeat(64);
const [CODER, TESTER, ANA] = [id('a'), id('b'), id('c')];
const AGENTS = new Map([
  [CODER, { id: 'coder', name: 'Coder' }],
  [TESTER, { id: 'tester', name: 'Tester' }],
]);

test('p tags address our agents, each once, in order; unknown and upper-case keys address no agent', () => {
  const tags = [
    ['p', TESTER],
    ['p', ANA],
    ['p', CODER],
    ['p', TESTER],
    ['p', CODER.toUpperCase()],
    ['p'],
    ['e', CODER],
  ];
  expect(addressedBy({ pubkey: ANA, tags }, AGENTS)).toEqual(['tester', 'coder']);
});

test('an event of one of our agents addresses no agent, not even its author', () => {
  expect(
    addressedBy(
      {
        pubkey: CODER,
        tags: [
          ['p', CODER],
          ['p', TESTER],
        ],
      },
      AGENTS,
    ),
  ).toEqual([]);
});

const nameOf = (pubkey: string) => AGENTS.get(pubkey)?.name ?? null;
const read = (text: string) => readReferences(text, nameOf);

test('references become names and short ids', () => {
  expect(read(`Hi nostr:${npubEncode(CODER)}!`)).toBe('Hi @Coder!');
  expect(read(`Hi nostr:${nprofileEncode({ pubkey: TESTER, relays: ['wss://r.example'] })}`)).toBe(
    'Hi @Tester',
  );
  expect(read(`nostr:${npubEncode(ANA)}`)).toBe(`@${shortNpub(ANA)}`);
  expect(shortNpub(ANA)).toMatch(/^npub1\w{4}…\w{4}$/);
  expect(read(`see nostr:${noteEncode(ANA)}`)).toBe('see (event cccccccc)');
  expect(read(`see nostr:${neventEncode({ id: ANA })}`)).toBe('see (event cccccccc)');
  const article = naddrEncode({ kind: 30_023, pubkey: CODER, identifier: 'intro' });
  expect(read(`see nostr:${article}`)).toBe('see (kind 30023 "intro" of @Coder)');
});

test('an unreadable reference stays as it is: a wrong letter, a secret key, another scheme, surrounding text', () => {
  const wrong = `nostr:${npubEncode(CODER).slice(0, -1)}q`;
  const secret = `nostr:${nsecEncode(new Uint8Array(32).fill(1))}`;
  for (const text of [wrong, secret, `web+${npubEncode(CODER)}`, 'nostr:npub1', 'nostr:', '']) {
    expect(read(text)).toBe(text);
  }
});

test('at most a hundred references are read, and a long text of them takes little time', async () => {
  const one = `nostr:${npubEncode(CODER)} `;
  const text = read(one.repeat(101));
  expect(text).toBe('@Coder '.repeat(100) + one);
  for (const long of ['nostr:npub1'.repeat(10_000), `nostr:npub1${'q'.repeat(120_000)}`])
    expect(await cpuMsOf(() => read(long))).toBeLessThan(1_000);
});
