import type { Clock } from '../clock.ts';
import { TroupeError } from '../errors.ts';
import { createAnthropic } from './anthropic.ts';
import type { Embedder } from './embedder.ts';
import { createOpenAiCompatible } from './openai-compatible.ts';
import { createOpenAiEmbedder } from './openai-embedder.ts';
import type { Provider } from './provider.ts';
import { createScripted } from './scripted.ts';
import type { EmbedderSettings, ProviderSettings, Script } from './settings.ts';

export interface ProviderContext {
  env: Record<string, string | undefined>;
  clock: Clock;
  /** The parsed JSON of a script file; checked here. */
  readScript: (path: string) => unknown;
}

/** The provider that an agent's settings ask for. Vendor SDKs are loaded with the first call, not here. */
export function createProvider(
  settings: ProviderSettings,
  { env, clock, readScript }: ProviderContext,
): Provider {
  switch (settings.provider) {
    case 'scripted': {
      const { script } = settings;
      // createScripted checks what it is given.
      return createScripted({
        script: (typeof script === 'string' ? readScript(script) : script) as Script,
        clock,
      });
    }
    case 'openai-compatible': {
      return createOpenAiCompatible({ baseUrl: settings.baseUrl, apiKey: keyOf(settings, env) });
    }
    case 'anthropic': {
      const { baseUrl, apiKeyEnv } = settings;
      const apiKey = readKey(env, apiKeyEnv) ?? missingKey(settings);
      return createAnthropic(baseUrl === undefined ? { apiKey } : { apiKey, baseUrl });
    }
    case 'openai':
    case 'claude-code':
    case 'codex':
      throw new TroupeError('config_invalid', `the ${settings.provider} provider is being built`);
  }
}

/** The embedder that a definition asks for. */
export function createEmbedder(settings: EmbedderSettings, { env }: Pick<ProviderContext, 'env'>): Embedder {
  const { baseUrl, model } = settings;
  return createOpenAiEmbedder({ baseUrl, model, apiKey: keyOf(settings, env) });
}

type OpenAiSettings = Pick<EmbedderSettings, 'provider' | 'baseUrl' | 'apiKeyEnv'>;

function keyOf(settings: OpenAiSettings, env: ProviderContext['env']): string {
  const { baseUrl, apiKeyEnv } = settings;
  return readKey(env, apiKeyEnv) ?? (isPrivateUrl(baseUrl) ? 'none' : missingKey(settings));
}

function readKey(env: ProviderContext['env'], name: string): string | undefined {
  // A newline from a file would make the header invalid.
  return env[name]?.trim() || undefined;
}

function missingKey({ provider, apiKeyEnv }: { provider: string; apiKeyEnv: string }): never {
  throw new TroupeError(
    'config_invalid',
    `the ${provider} provider needs an API key: set the environment variable ${apiKeyEnv}, or name another one with apiKeyEnv`,
    { provider, variable: apiKeyEnv },
  );
}

const PRIVATE_V4 = /^(127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|169\.254\.|0\.0\.0\.0$)/;
const PRIVATE_V6 = /^\[(::1|f[cd][0-9a-f]{2}:.*|fe80:.*)\]$/;
const PRIVATE_NAME = /^(localhost|[^.:[\]]+|.*\.(localhost|local|internal|lan))$/;

/** This machine or its network, where servers such as Ollama ask for no key. */
function isPrivateUrl(url: string): boolean {
  const { hostname } = new URL(url);
  return PRIVATE_V4.test(hostname) || PRIVATE_V6.test(hostname) || PRIVATE_NAME.test(hostname);
}
