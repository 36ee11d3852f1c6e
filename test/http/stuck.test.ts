import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { startFakeOpenAi } from '../../packages/testing/src/fake-vendors.ts';
import { startGuarded, withKey } from './access.ts';
import { ANA, scripted, startApi } from './harness.ts';

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

const ASKS = {
  ...scripted('cy', [
    {
      when: { contains: 'inquire', step: 1 },
      calls: [{ name: 'ask', args: { question: 'Which colour?' } }],
    } as never,
    {
      when: { contains: 'pay', step: 1 },
      calls: [{ name: 'ask', args: { question: 'How much?' } }],
    } as never,
    { reply: 'fine' },
  ]),
  tools: ['ask'],
};

test('a question that no person has answered for long is stuck, until it is answered', async () => {
  const ahead = { ms: 0 };
  const clock = { ...systemClock, now: () => systemClock.now() + ahead.ms };
  await using api = await startGuarded({ company: { agents: [ASKS] }, clock, troupe: { clock } });
  const reader = await withKey(api, { scopes: ['read'] });
  const guest = await withKey(api, { scopes: ['read'], conversations: ['c2'] });
  for (const [id, content] of [
    ['c1', 'inquire'],
    ['c2', 'pay'],
    ['calm', 'hello'],
  ] as const) {
    await api.troupe.send(id, { author: ANA, to: ['cy'], content });
    // Each ends before the next begins: the oldest question comes first in the list.
    await api.troupe.idle();
  }
  const stuck = async ({ get }: Pick<typeof reader, 'get'>, query = '') =>
    (await get(`/api/stuck${query}`)).body;
  // The inbox has read it all, and a day has not passed.
  await expect.poll(async () => (await reader.get('/api/inbox')).body['unread']).toBe(0);
  expect(await stuck(reader)).toEqual(QUIET);
  ahead.ms = 3 * 24 * 3_600_000;
  const words = 'waits for an answer of a person for 3 days';
  const line = { agent: 'cy', turn: null, words, actions: ['answer'] };
  const { stuck: lines, total } = await stuck(reader);
  expect(lines).toMatchObject([
    {
      ...line,
      conversation: 'c1',
      reason: { kind: 'unanswered', asks: 'question', text: 'Which colour?', count: 1 },
    },
    { ...line, conversation: 'c2', reason: { text: 'How much?' } },
  ]);
  expect(total).toBe(2);
  expect(await stuck(reader, '?limit=1')).toMatchObject({ stuck: [{ conversation: 'c1' }], total: 2 });
  expect(await stuck(guest)).toMatchObject({ stuck: [{ conversation: 'c2' }], total: 1 });
  const [{ reason }] = lines as [{ reason: { task: string } }];
  await api.troupe.command(
    { command: 'answer', conversation: 'c1', question: reason.task, content: 'Red' } as never,
    ANA,
  );
  // The inbox reads the answer a moment later.
  await expect.poll(() => stuck(reader)).toMatchObject({ stuck: [{ conversation: 'c2' }], total: 1 });
});
