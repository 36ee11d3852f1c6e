import { expect, test } from 'vitest';
import { Intake } from '../../src/nostr/intake.ts';
import { NostrSettings } from '../../src/nostr/settings.ts';
import { createFakeClock } from '../../src/testing/index.ts';
import { person } from './sign.ts';

test('strangers who are to be ignored are refused before anything of theirs is verified', async () => {
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
