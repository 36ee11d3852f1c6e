import { expect, test } from 'vitest';
import type { EventOf } from '../../src/events/index.ts';
import { startFakeOpenAi } from '../../packages/testing/src/fake-vendors.ts';
import { LLAMA_CPP } from '../support/llama-cpp.ts';
import { openTroupe } from '../support/mode.ts';

test('the window named by a refusal is reported, not the configured one', async () => {
  await using server = await startFakeOpenAi(() => ({ raw: LLAMA_CPP.contextSize }));
  const agent = { id: 'bo', provider: 'openai-compatible', model: 'm', contextWindow: 100_000 } as const;
  await using troupe = await openTroupe({ agents: [{ ...agent, baseUrl: server.url }] });
  const author = { kind: 'user', id: 'u1', name: 'Uma' } as const;
  await troupe.send('c', { author, content: 'Where are the books?', to: ['bo'] });
  await troupe.idle();
  const { events } = await troupe.events('c');
  const failed = events.find(({ kind }) => kind === 'turn.failed') as EventOf<'turn.failed'>;
  expect(failed.body.code).toBe('context_overflow');
  expect(failed.body.message).toContain('exceeds the available context size (8192 tokens)');
  expect(failed.body.message).toMatch(/a window of 8192 less \d+ reserved/);
  expect(failed.body.message).not.toContain('100000');
});
