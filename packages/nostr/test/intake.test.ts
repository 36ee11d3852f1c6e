import { expect, test } from 'vitest';
import { Intake } from '../src/intake.ts';
import { NostrSettings } from '../src/settings.ts';
import { createFakeClock } from '../../testing/src/index.ts';
import { person } from './sign.ts';

test('events of ignored strangers are refused before their signatures are verified', async () => {
  const [coder, ana, eve] = [person(), person(), person()];
  const clock = createFakeClock(Date.now());
  const refused: string[] = [];
  const verified: string[] = [];
  const intake = new Intake({
    link: { url: 'wss://a.example', query: async () => [], refuse: (reason) => void refused.push(reason) },
    receiver: {
      isKnown: () => false,
      isHeard: (pubkey) => pubkey === ana.pubkey,
      receive: async () => 'stored',
    },
    agents: new Map([[coder.pubkey, { id: 'coder', name: 'Coder' }]]),
    settings: NostrSettings.parse({ relays: ['wss://a.example'], strangers: 'ignore' }),
    relays: 1,
    verify: ({ pubkey }) => {
      verified.push(pubkey);
      return null;
    },
    mark: { begin: () => () => {} },
    handled: () => {},
    clock,
    signal: new AbortController().signal,
  });
  for (const each of [eve, ana]) await intake.take(each.sign({ tags: [['p', coder.pubkey]] }));
  expect(verified).toEqual([ana.pubkey]);
  expect(refused).toEqual(['stranger']);
});

test('events of an author over the rate wait in order and delay no other author; beyond a thousand waiting events the rest is refused', async () => {
  const [coder, eve, ana] = [person(), person(), person()];
  const clock = createFakeClock(Date.now());
  const refused: string[] = [];
  const received: string[] = [];
  const stop = new AbortController();
  const intake = new Intake({
    link: { url: 'wss://a.example', query: async () => [], refuse: (reason) => void refused.push(reason) },
    receiver: {
      isKnown: (id) => received.includes(id),
      isHeard: () => true,
      receive: async ({ id }) => {
        received.push(id);
        return 'stored';
      },
    },
    agents: new Map([[coder.pubkey, { id: 'coder', name: 'Coder' }]]),
    settings: NostrSettings.parse({
      relays: ['wss://a.example'],
      limits: { perAuthorPerSecond: 1, verificationsPerSecond: 10_000 },
    }),
    relays: 1,
    verify: () => null,
    mark: { begin: () => () => {} },
    handled: () => {},
    clock,
    signal: stop.signal,
  });
  const by = (author: typeof eve, count: number) => {
    const first = author.sign({ tags: [['p', coder.pubkey]] });
    const ids = Array.from(
      { length: count },
      (_, n) => `${first.id.slice(0, 60)}${n.toString(16).padStart(4, '0')}`,
    );
    return ids.map((id) => ({ ...first, id }));
  };
  const flood = by(eve, 1_020);
  const words = by(ana, 12);
  for (const event of flood.slice(0, 500)) await intake.take(event);
  for (const event of words) await intake.take(event);
  for (const event of flood.slice(500)) await intake.take(event);
  // Ten events of each author are taken at once, and a thousand others wait.
  expect(refused).toEqual(Array(12).fill('rate'));
  await clock.advance(2_000);
  expect(received.filter((id) => words.some((event) => event.id === id))).toEqual(words.map(({ id }) => id));
  await clock.advance(1_100_000);
  await intake.idle();
  const own = flood.map(({ id }) => id).filter((id) => received.includes(id));
  expect(received.filter((id) => own.includes(id))).toEqual(own);
  expect(own).toHaveLength(1_008);
  stop.abort();
});
