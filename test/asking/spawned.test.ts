import { expect, test } from 'vitest';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import { startFakeOpenAi } from '../../packages/testing/src/fake-vendors.ts';
import { openTroupe } from '../support/mode.ts';

const ANA = { kind: 'user', id: 'ana', name: 'Ana' } as const;
const LEAD: AgentInput = { id: 'lead', provider: 'scripted', script: { rules: [{ reply: 'ok' }] } };

/** A troupe with a template whose model answers when `open` is called. */
async function stage() {
  const { promise, resolve: open } = Promise.withResolvers<void>();
  const vendor = await startFakeOpenAi(async () => {
    await promise;
    return { text: 'lifted' };
  });
  const helper: AgentInput = {
    id: 'helper',
    provider: 'openai-compatible',
    model: 'm',
    baseUrl: vendor.url,
    apiKeyEnv: 'KEY',
  };
  const troupe = await openTroupe({ agents: [LEAD], templates: [helper] }, { env: { KEY: 'k' } });
  const close = async () => {
    await troupe.close();
    await vendor.close();
  };
  return { troupe, open, [Symbol.asyncDispose]: close };
}

test('an agent of a template is waited for as any other', async () => {
  await using room = await stage();
  const asked = room.troupe.ask('c', { author: ANA, to: ['helper-1'], content: 'lift it' });
  room.open();
  expect(await asked).toMatchObject({ outcome: 'answered', text: 'lifted' });
});

test('a conversation is not at rest while an agent of a template has to answer', async () => {
  await using room = await stage();
  await room.troupe.send('c', { author: ANA, to: ['helper-1'], content: 'lift it' });
  const rest = room.troupe.idle({ conversation: 'c' });
  room.open();
  await rest;
  const { events } = await room.troupe.events('c');
  expect(events.at(-1)).toMatchObject({ kind: 'turn.done', author: { id: 'helper-1' } });
});
