import { getPublicKey } from 'nostr-tools/pure';
import { noteEncode, npubEncode, nprofileEncode } from 'nostr-tools/nip19';
import { expect, onTestFinished, test } from 'vitest';
import type { AgentInput } from '../../../src/library/config/agent-input.ts';
import { createApp } from '../../../src/http/api/index.ts';
import { createTroupe } from '../../../src/library/runtime/create-troupe.ts';
import { nostr } from '../src/index.ts';
import { agent, KEYS } from './outbound-stage.ts';
import { person } from './sign.ts';

const ADA = getPublicKey(Buffer.from(KEYS.ADA_KEY, 'hex'));
const STRANGER = person();
const ANA = { kind: 'user', id: 'ana', name: 'Ana' } as const;
const NOTE = 'ab'.repeat(32);
/** Nothing listens there, but the troupe's HTTP doors work anyway. */
const NO_RELAY = 'ws://127.0.0.1:1';

async function openOne(integrations: ReturnType<typeof nostr>[]) {
  const ada = { ...agent('ada', 'ok'), name: 'Ada', pubkey: ADA } as AgentInput;
  const troupe = await createTroupe(
    { agents: [ada] },
    { integrations, env: KEYS, onWarning: () => undefined },
  );
  onTestFinished(() => troupe.close());
  return troupe;
}

const said = `ask nostr:${npubEncode(ADA)} or nostr:${nprofileEncode({ pubkey: ADA })} about nostr:${noteEncode(NOTE)}, not nostr:${npubEncode(STRANGER.pubkey)} nor nostr:npub1nonsense`;
const read = /^ask @Ada or @Ada about \(event abababab\), not @npub1\S{4}…\S{4} nor nostr:npub1nonsense$/;

test('references in a message are readable, whatever door it came by', async () => {
  const troupe = await openOne([nostr({ relays: [NO_RELAY], keys: { ada: { env: 'ADA_KEY' } } })]);
  const { event } = await troupe.send('c', { author: ANA, content: said });
  expect(event.body).toEqual({ content: expect.stringMatching(read) });
  const answer = await createApp(troupe, {}).request('/api/conversations/c/events', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ author: ANA, content: said }),
  });
  expect(answer.status).toBe(201);
  const { events } = await troupe.events('c');
  const contents = events.flatMap(({ kind, body }) => (kind === 'message' ? [body.content] : []));
  expect(contents).toHaveLength(2);
  for (const content of contents) expect(content).toMatch(read);
});

test('without the integration a text stays as it was written', async () => {
  const troupe = await openOne([]);
  const { event } = await troupe.send('c', { author: ANA, content: said });
  expect(event.body).toEqual({ content: said });
});

test('a reference wakes nobody: it is part of the text', async () => {
  const troupe = await openOne([nostr({ relays: [NO_RELAY], keys: { ada: { env: 'ADA_KEY' } } })]);
  const { event } = await troupe.send('c', { author: ANA, content: said });
  expect(event.to).toEqual([]);
});
