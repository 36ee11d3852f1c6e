import { describe, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createAnthropic } from '../../src/providers/anthropic.ts';
import { createOpenAiCompatible } from '../../src/providers/openai-compatible.ts';
import { createScripted } from '../../src/providers/scripted.ts';
import { ScriptRule } from '../../src/providers/settings.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { startFakeAnthropic } from '../../src/testing/fake-anthropic.ts';
import { startFakeOpenAi } from '../../src/testing/fake-openai.ts';
import type { FakeHandler } from '../../src/testing/fake-reply.ts';
import type { FakeServer } from '../../src/testing/fake-server.ts';
import { providerConformance, type MakeProvider } from '../../src/testing/provider-conformance.ts';

function overHttp(
  start: (handler?: FakeHandler) => Promise<FakeServer>,
  create: (url: string) => Provider,
): MakeProvider {
  return async (scene) => {
    const server = await start(() => (scene === 'unreachable' ? {} : scene));
    if (scene === 'unreachable') await server.close();
    return {
      provider: create(server.url),
      requests: () => server.requests.length,
      arrived: () => server.arrived(),
      [Symbol.asyncDispose]: () => (scene === 'unreachable' ? Promise.resolve() : server.close()),
    };
  };
}

const NEVER_MS = 3_600_000;

const scripted: MakeProvider = async (scene) => {
  if (scene === 'unreachable' || scene.stop || scene.usage !== undefined || scene.reasoning) return null;
  if (scene.error?.retryAfter) return null;
  const { text = '', chunk = 8, breaks, error } = scene;
  const broken = breaks &&
    breaks.how !== 'hang' && { after: breaks.after * chunk, code: 'provider_truncated' };
  const failing = error && { after: (error.after ?? 0) * chunk, code: error.code };
  const rule = ScriptRule.parse({
    reply: text,
    chunk,
    calls: (broken ? [] : (scene.calls ?? [])).map(({ name, args }) => ({ name, args })),
    delayMs: scene.hang ? NEVER_MS : 0,
    chunkDelayMs: breaks?.how === 'hang' ? NEVER_MS : 0,
    fail: broken || failing,
  });
  return {
    provider: createScripted({ script: { rules: [rule] }, clock: systemClock }),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
};

const ADAPTERS: Record<string, MakeProvider> = {
  scripted,
  'openai-compatible': overHttp(startFakeOpenAi, (baseUrl) =>
    createOpenAiCompatible({ baseUrl, apiKey: 'key-of-test' }),
  ),
  anthropic: overHttp(startFakeAnthropic, (baseUrl) => createAnthropic({ baseUrl, apiKey: 'key-of-test' })),
};

describe.each(Object.entries(ADAPTERS))('%s', (_, make) => {
  for (const { group, name, ...rest } of providerConformance(make))
    test(`${group}: ${name}`, () => rest.run());
});
