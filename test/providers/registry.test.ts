import { expect, test } from 'vitest';
import { createEmbedder, createProvider } from '../../src/library/runtime/registry.ts';
import { EmbedderSettings, ProviderSettings } from '../../src/providers/settings.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { startFakeAnthropic, startFakeOpenAi } from '../../packages/testing/src/fake-vendors.ts';
import { collectEvents, textOf } from '../../packages/testing/src/provider-conformance.ts';

const clock = createFakeClock();
const SCRIPTS: Record<string, unknown> = {
  'a.json': { rules: [{ reply: 'from a file' }] },
  'b.json': { rules: [] },
};
const create = (settings: object, env: Record<string, string> = {}) =>
  createProvider(ProviderSettings.parse(settings), {
    env,
    clock,
    readScript: (path) => SCRIPTS[path],
    home: '',
  });

test('a script may be in a file', async () => {
  expect(textOf(await collectEvents(await create({ provider: 'scripted', script: 'a.json' })))).toBe(
    'from a file',
  );
});

test('an invalid script file is refused', async () => {
  const invalid = expect.objectContaining({
    code: 'config_invalid',
    message: expect.stringContaining('rules'),
  });
  await expect(create({ provider: 'scripted', script: 'b.json' })).rejects.toThrow(invalid);
});

test.each([
  [{ provider: 'anthropic' }, 'ANTHROPIC_API_KEY'],
  [{ provider: 'openai' }, 'OPENAI_API_KEY'],
  [{ provider: 'openai-compatible' }, 'OPENAI_API_KEY'],
  [{ provider: 'openai-compatible', baseUrl: 'https://openrouter.ai/api/v1', apiKeyEnv: 'OR_KEY' }, 'OR_KEY'],
  [{ provider: 'openai-compatible', baseUrl: 'http://localhost.evil.com/v1' }, 'OPENAI_API_KEY'],
])('a missing key is refused, naming its variable: %o', async (settings, variable) => {
  const refused = expect.objectContaining({
    code: 'config_invalid',
    message: expect.stringContaining(variable),
    data: expect.objectContaining({ variable }),
  });
  await expect(create(settings)).rejects.toThrow(refused);
  await expect(create(settings, { [variable]: ' \n' })).rejects.toThrow(refused);
  expect((await create(settings, { [variable]: 'k' })).name).toBe(settings.provider);
});

test.each([
  'http://localhost:11434/v1',
  'http://192.168.1.5:8000/v1',
  'http://172.20.0.2/v1',
  'http://[::1]:11434/v1',
  'http://ollama:11434/v1',
  'http://gpu.local/v1',
])('a server on this machine or network needs no key: %s', async (baseUrl) => {
  expect((await create({ provider: 'openai-compatible', baseUrl })).name).toBe('openai-compatible');
});

test('a server that needs no key is sent a placeholder', async () => {
  await using server = await startFakeOpenAi();
  await collectEvents(await create({ provider: 'openai-compatible', baseUrl: server.url }));
  expect(server.requests[0]?.headers).toMatchObject({ authorization: 'Bearer none' });
});

test('an embedder needs a key like a provider, and its server is not contacted at the start', async () => {
  const settings = EmbedderSettings.parse({ provider: 'openai-compatible', model: 'vectors' });
  await expect(createEmbedder(settings, { env: {} })).rejects.toThrow(
    expect.objectContaining({ code: 'config_invalid', message: expect.stringContaining('OPENAI_API_KEY') }),
  );
  expect((await createEmbedder(settings, { env: { OPENAI_API_KEY: 'k' } })).model).toBe('vectors');
  const local = { ...settings, baseUrl: 'http://localhost:11434/v1' };
  expect((await createEmbedder(local, { env: {} })).model).toBe('vectors');
});

test('a thinking budget must leave room for the answer', async () => {
  const settings = { provider: 'anthropic', thinking: 4096, maxOutputTokens: 4096 };
  await expect(create(settings, { ANTHROPIC_API_KEY: 'k' })).rejects.toThrow(
    expect.objectContaining({
      code: 'config_invalid',
      message: expect.stringContaining('less than maxOutputTokens (4096)'),
    }),
  );
  const roomy = await create({ ...settings, maxOutputTokens: 8192 }, { ANTHROPIC_API_KEY: 'k' });
  expect(roomy.name).toBe('anthropic');
});

test('the thinking settings of a definition reach the vendor', async () => {
  await using server = await startFakeAnthropic();
  const settings = {
    provider: 'anthropic',
    baseUrl: server.url,
    thinking: 'adaptive',
    effort: 'low',
  };
  await collectEvents(await create(settings, { ANTHROPIC_API_KEY: 'k' }));
  expect(server.requests[0]?.body).toMatchObject({
    thinking: { type: 'adaptive' },
    output_config: { effort: 'low' },
  });
});
