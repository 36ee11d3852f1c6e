import { expect, test } from 'vitest';
import { startFakeOpenAi } from '../../packages/testing/src/index.ts';
import { openTroupe } from '../support/mode.ts';

const ANA = { kind: 'user', id: 'ana', name: 'Ana' } as const;

async function answeredWith(stop: 'length' | 'refusal') {
  await using server = await startFakeOpenAi(() => ({ text: 'As far as it', stop }));
  await using troupe = await openTroupe({
    agents: [{ id: 'p', provider: 'openai-compatible', baseUrl: server.url }],
  });
  await troupe.send('c', { author: ANA, content: 'Go.', to: ['p'] });
  await troupe.idle();
  const { events } = await troupe.events('c');
  return { events, calls: server.requests.length };
}

test('a reply cut off at the output limit is published, and its turn says so', async () => {
  const { events } = await answeredWith('length');
  expect(events.slice(-2)).toMatchObject([
    { kind: 'message', body: { content: 'As far as it' } },
    { kind: 'turn.done', body: { cut: 'length' } },
  ]);
});

test('an answer that the provider refuses is no reply: the turn fails once, with the reason', async () => {
  const { events, calls } = await answeredWith('refusal');
  expect(calls).toBe(1);
  expect(events.at(-1)).toMatchObject({
    kind: 'turn.failed',
    body: { code: 'provider_refused', partial: 'As far as it' },
  });
  expect(events.filter(({ kind, author }) => kind === 'message' && author.kind === 'agent')).toEqual([]);
});
