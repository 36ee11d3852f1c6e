import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { createAnthropic } from '../../src/providers/anthropic/anthropic.ts';
import { createOpenAiCompatible } from '../../src/providers/openai/openai-compatible.ts';
import { createOpenAiEmbedder } from '../../src/providers/openai/client.ts';
import { createOpenAi } from '../../src/providers/openai/openai.ts';
import type { Provider } from '../../src/providers/provider.ts';
import {
  startFakeAnthropic,
  startFakeOpenAi,
  startFakeOpenAiResponses,
  type FakeServer,
} from '../../packages/testing/src/fake-vendors.ts';
import { collectEvents } from '../../packages/testing/src/provider-conformance.ts';

/** Variables that the vendors' SDKs turn into headers. */
const ACCOUNT = {
  OPENAI_ORG_ID: 'account-org',
  OPENAI_PROJECT_ID: 'account-project',
  OPENAI_ADMIN_KEY: 'account-admin',
  OPENAI_CUSTOM_HEADERS: 'X-Team: account-team\nAuthorization: Bearer account-bearer',
  ANTHROPIC_AUTH_TOKEN: 'account-token',
  ANTHROPIC_CUSTOM_HEADERS:
    'x-team: account-team\nX-Api-Key: account-key\nAuthorization: Bearer account-bearer',
};

let chat: FakeServer;
let responses: FakeServer;
let anthropic: FakeServer;

beforeAll(async () => {
  for (const [name, value] of Object.entries(ACCOUNT)) vi.stubEnv(name, value);
  chat = await startFakeOpenAi(() => ({ text: 'ok' }));
  responses = await startFakeOpenAiResponses(() => ({ text: 'ok' }));
  anthropic = await startFakeAnthropic(() => ({ text: 'ok' }));
});
afterEach(() => vi.unstubAllGlobals());
afterAll(async () => {
  vi.unstubAllEnvs();
  await Promise.all([chat, responses, anthropic].map((server) => server.close()));
});

/** The headers that a provider sends to the vendor's own server. No connection is made. */
async function headersTo(host: string, provider: Provider): Promise<Headers> {
  const sent: { url: URL; headers: Headers }[] = [];
  vi.stubGlobal('fetch', async (input: string | URL, init?: RequestInit) => {
    sent.push({ url: new URL(input), headers: new Headers(init?.headers) });
    return new Response('{}', { status: 500 });
  });
  await collectEvents(provider);
  return sent.find(({ url }) => url.hostname === host)?.headers ?? new Headers();
}

describe('the account of the environment', () => {
  test('does not reach a foreign server of the responses API', async () => {
    await collectEvents(createOpenAi({ baseUrl: responses.url, apiKey: 'own-key' }));
    const { headers } = responses.requests[0] ?? {};
    expect(headers).toMatchObject({ authorization: 'Bearer own-key', 'content-type': 'application/json' });
    expect(JSON.stringify(headers)).not.toContain('account-');
  });

  test('does not reach a compatible server', async () => {
    await collectEvents(createOpenAiCompatible({ baseUrl: chat.url, apiKey: 'own-key' }));
    const { headers } = chat.requests[0] ?? {};
    expect(headers).toMatchObject({ authorization: 'Bearer own-key' });
    expect(JSON.stringify(headers)).not.toContain('account-');
  });

  test('does not reach a foreign server of embeddings', async () => {
    const embedder = createOpenAiEmbedder({ baseUrl: chat.url, apiKey: 'own-key', model: 'small' });
    await embedder.embed(['one'], { signal: new AbortController().signal });
    const { headers } = chat.requests.at(-1) ?? {};
    expect(headers).toMatchObject({ authorization: 'Bearer own-key' });
    expect(JSON.stringify(headers)).not.toContain('account-');
  });

  test('does not reach a foreign server of the messages API', async () => {
    await collectEvents(createAnthropic({ baseUrl: anthropic.url, apiKey: 'own-key' }));
    const { headers } = anthropic.requests[0] ?? {};
    expect(headers).toMatchObject({ 'x-api-key': 'own-key', 'content-type': 'application/json' });
    expect(headers).toHaveProperty('anthropic-version');
    expect(JSON.stringify(headers)).not.toContain('account-');
  });

  test.each(['https://eu.api.openai.com/v1', 'https://us.api.openai.com/v1'])(
    'reaches %s, a region of the vendor',
    async (baseUrl) => {
      const { hostname } = new URL(baseUrl);
      const sent = await headersTo(hostname, createOpenAi({ baseUrl, apiKey: 'own-key' }));
      expect(sent.get('openai-organization')).toBe('account-org');
      const chats = await headersTo(hostname, createOpenAiCompatible({ baseUrl, apiKey: 'own-key' }));
      expect(chats.get('openai-project')).toBe('account-project');
    },
  );

  test.each([
    'https://api.openai.com.evil.example/v1',
    'https://evil-api.openai.com/v1',
    'https://a.b.api.openai.com/v1',
  ])('does not reach %s', async (baseUrl) => {
    const sent = await headersTo(new URL(baseUrl).hostname, createOpenAi({ baseUrl, apiKey: 'own-key' }));
    expect(sent.get('authorization')).toBe('Bearer own-key');
    expect(JSON.stringify([...sent])).not.toContain('account-');
  });

  test('reaches the vendors themselves', async () => {
    const openAi = await headersTo('api.openai.com', createOpenAi({ apiKey: 'own-key' }));
    expect(openAi.get('openai-organization')).toBe('account-org');
    expect(openAi.get('openai-project')).toBe('account-project');
    expect(openAi.get('x-team')).toBe('account-team');
    const claude = await headersTo('api.anthropic.com', createAnthropic({ apiKey: 'own-key' }));
    expect(claude.get('x-team')).toBe('account-team');
  });
});
