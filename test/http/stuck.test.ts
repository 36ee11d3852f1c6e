import { expect, test } from 'vitest';
import { startFakeOpenAi } from '../../src/testing/fake-vendors.ts';
import { startGuarded, withKey } from './access.ts';
import { ANA, startApi } from './harness.ts';

const QUIET = { stuck: [], total: 0 };

async function company() {
  const vendor = await startFakeOpenAi(() => ({ hang: true }));
  const agents = ['bo', 'cy'].map((id) => ({
    id,
    provider: 'openai-compatible' as const,
    baseUrl: vendor.url,
    model: id,
    contextWindow: 8_000,
  }));
  const limits = { providers: { 'openai-compatible': { turns: 1 } } };
  return { vendor, company: { agents, limits } };
}

test('a silent model, and the turn that waits behind it, are told in words, with who holds the place', async () => {
  const { vendor, company: input } = await company();
  await using api = await startApi({ company: input });
  try {
    expect((await api.get('/api/stuck')).body).toEqual(QUIET);
    await api.troupe.send('c1', { author: ANA, to: ['bo'], content: 'Hello' });
    await expect.poll(() => vendor.requests.length).toBe(1);
    await api.troupe.send('c2', { author: ANA, to: ['cy'], content: 'Hello' });
    await expect.poll(async () => (await api.get('/api/stuck?after=0')).body['total']).toBe(2);
    const { body } = await api.get('/api/stuck?after=0');
    expect(body['stuck']).toMatchObject([
      {
        conversation: 'c1',
        agent: 'bo',
        turn: 'c1:bo:1',
        reason: { kind: 'model_silent', lastWord: null },
        words: expect.stringMatching(/^no word from the model for \d+ s$/),
        actions: ['abort', 'check_provider'],
      },
      {
        conversation: 'c2',
        agent: 'cy',
        turn: null,
        reason: {
          kind: 'slot_full',
          provider: 'openai-compatible',
          holders: 1,
          heldBy: [{ turn: 'c1:bo:1' }],
        },
        words: expect.stringMatching(/for \d+ s, held by @bo in c1$/),
        actions: ['raise_limit'],
      },
    ]);
    // Not stuck yet by the thresholds, and another tenant sees nothing of it.
    expect((await api.get('/api/stuck')).body).toEqual(QUIET);
    expect(await api.troupe.forTenant('acme').stuck({ afterMs: 0 })).toEqual(QUIET);
    expect((await api.get('/api/stuck?after=0&limit=1')).body).toMatchObject({
      stuck: [{ agent: 'bo' }],
      total: 2,
    });
  } finally {
    await vendor.close();
  }
});

test('the ages from which work is stuck are settings', async () => {
  const { vendor, company: input } = await company();
  const limits = { ...input.limits, stuckModelMs: 1 };
  await using api = await startApi({ company: { ...input, limits } });
  try {
    await api.troupe.send('c1', { author: ANA, to: ['bo'], content: 'Hello' });
    await expect.poll(async () => (await api.troupe.stuck()).total).toBe(1);
  } finally {
    await vendor.close();
  }
});

test('a caller is told of stuck work in granted conversations only', async () => {
  const { vendor, company: input } = await company();
  await using api = await startGuarded({ company: input });
  try {
    const guest = await withKey(api, { scopes: ['read'], conversations: ['c2'] });
    await api.troupe.send('c1', { author: ANA, to: ['bo'], content: 'Hello' });
    await expect.poll(() => vendor.requests.length).toBe(1);
    await api.troupe.send('c2', { author: ANA, to: ['cy'], content: 'Hello' });
    await expect.poll(async () => (await guest.get('/api/stuck?after=0')).body['total']).toBe(1);
    const { body } = await guest.get('/api/stuck?after=0');
    expect(body['stuck']).toMatchObject([{ conversation: 'c2', reason: { holders: 1, heldBy: [] } }]);
    expect(JSON.stringify(body)).not.toContain('c1');
  } finally {
    await vendor.close();
  }
});
