import { expect, test } from 'vitest';
import { startFakeOpenAi } from '../../packages/testing/src/fake-vendors.ts';
import { ANA, startApi } from './harness.ts';

test('the prompt of a turn can be read while its model has not said a word', async () => {
  const asked = Promise.withResolvers<void>();
  const vendor = await startFakeOpenAi(() => {
    asked.resolve();
    return { hang: true };
  });
  const bo = {
    id: 'bo',
    provider: 'openai-compatible',
    baseUrl: vendor.url,
    model: 'bo',
    contextWindow: 8_000,
  } as const;
  await using api = await startApi({ agents: [bo] });
  try {
    await api.troupe.send('c1', { author: ANA, to: ['bo'], content: 'Where are the ledgers?' });
    await asked.promise;
    // The receipt is written beside the call, which does not wait for it.
    await expect.poll(async () => (await api.get('/api/turns/c1:bo:1/prompt')).status).toBe(200);
    const { body } = await api.get('/api/turns/c1:bo:1/prompt');
    expect(body).toMatchObject({ turn: 'c1:bo:1', step: 1, verified: true });
    expect(JSON.stringify(body['messages'])).toContain('Where are the ledgers?');
    const { body: trace } = await api.get('/api/turns/c1:bo:1');
    expect(trace).toMatchObject({ status: 'running', prompts: [{ step: 1 }] });
  } finally {
    await vendor.close();
  }
});
