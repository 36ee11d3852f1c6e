import { join, resolve } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import {
  type AiSdkModel,
  isAiSdkModel,
  isAiSdkVendor,
  modelOf,
  versionProblem,
} from '../../providers/ai-sdk-model.ts';
import { isInPackage, loadAgents } from '../../providers/agents-package.ts';
import type { Embedder } from '../../providers/embedder.ts';
import {
  type CustomAgent,
  type CustomProvider,
  isProvider,
  type Provider,
} from '../../providers/provider.ts';
import type { ReplyLimitSettings } from '../../providers/reply-limits.ts';
import {
  type RequestExtras,
  requestExtras,
  type RequestSettings,
  type Sampling,
  samplingOf,
} from '../../providers/request-settings.ts';
import type { ScriptInput } from '../../providers/script.ts';
import type { EmbedderSettings, ProviderSettings } from '../../providers/settings.ts';

export interface ProviderContext {
  env: Record<string, string | undefined>;
  clock: Clock;
  /** Parses the JSON of a script file; the script is validated here. */
  readScript: (path: string) => unknown;
  /** Directory for the state of providers with a memory. */
  home: string;
  /** Providers of the definition, by name. */
  custom?: Readonly<Record<string, CustomProvider>> | undefined;
}

/** The login for Claude Code without an API key; `claude setup-token` prints it. */
const CLAUDE_LOGIN_ENV = 'CLAUDE_CODE_OAUTH_TOKEN';

/** The provider for an agent's settings, whose adapter is loaded here. Vendor SDKs are loaded with the first call. */
export async function createProvider(
  settings: ProviderSettings & { id?: string },
  { env, clock, readScript, home, custom = {} }: ProviderContext,
): Promise<Provider> {
  const { silenceMs } = settings;
  const limits = silenceMs === undefined ? {} : { replyLimits: { silenceMs } };
  const extras = requestExtras(settings as RequestSettings, env);
  const common = { ...limits, sampling: samplingOf(settings), extras };
  switch (settings.provider) {
    case 'scripted': {
      const { script } = settings;
      const { createScripted } = await import('../../providers/scripted.ts');
      // createScripted validates its script.
      return createScripted({
        script: (typeof script === 'string' ? readScript(script) : script) as ScriptInput,
        clock,
      });
    }
    case 'custom':
      return await customOf(settings, custom, common);
    case 'ai-sdk':
      return await aiSdkOf(settings.languageModel as AiSdkModel, common);
    case 'openai-compatible': {
      const { baseUrl, quirks } = settings;
      const { createOpenAiCompatible } = await import('../../providers/openai/openai-compatible.ts');
      return createOpenAiCompatible({
        baseUrl,
        apiKey: keyOf(settings, env),
        ...common,
        ...(quirks && { quirks }),
      });
    }
    case 'a2a': {
      const agents = await loadAgents('a2a');
      return agents.createA2a({
        url: settings.url,
        apiKey: tokenOf(settings, env),
        cardKeys: settings.cardKeys,
        clock,
        ...limits,
      });
    }
    case 'anthropic':
      return await anthropicOf(settings, env, common);
    case 'openai': {
      const { createOpenAi } = await import('../../providers/openai/openai.ts');
      return createOpenAi({ baseUrl: settings.baseUrl, apiKey: requiredKey(settings, env), ...common });
    }
    case 'claude-code': {
      const { env: own, builtinTools } = settings;
      const names = readKey(env, settings.apiKeyEnv) === undefined ? [...own, CLAUDE_LOGIN_ENV] : own;
      const agents = await loadAgents('claude-code');
      return agents.createClaudeCode({
        home: join(home, 'claude-code'),
        env: pick(env, names),
        builtinTools,
        clock,
        ...limits,
        ...programOptions(settings, env),
      });
    }
    case 'codex': {
      const { env: own, builtinTools, sandbox } = settings;
      const agents = await loadAgents('codex');
      return agents.createCodex({
        home,
        env: pick(env, own),
        builtinTools,
        sandbox,
        ...limits,
        ...programOptions(settings, env),
      });
    }
  }
}

/** Checks that the packages of these providers are installed. Throws `package_missing`. */
export async function requirePackages(agents: readonly Pick<ProviderSettings, 'provider'>[]): Promise<void> {
  const used = new Set(agents.map(({ provider }) => provider));
  if (used.has('anthropic')) {
    const { requireAnthropicSdk } = await import('../../providers/anthropic/anthropic.ts');
    await requireAnthropicSdk();
  }
  if (used.has('openai') || used.has('openai-compatible')) {
    const { requireOpenAiSdk } = await import('../../providers/openai/client.ts');
    await requireOpenAiSdk();
  }
  const elsewhere = [...used].find(isInPackage);
  if (elsewhere) await loadAgents(elsewhere);
}

interface Common {
  replyLimits?: ReplyLimitSettings;
  sampling: Sampling;
  extras: RequestExtras;
}

async function aiSdkOf(model: AiSdkModel, common: Common): Promise<Provider> {
  const { createAiSdk } = await import('../../providers/ai-sdk/ai-sdk.ts');
  return createAiSdk(model, common);
}

async function customOf(
  settings: SettingsOf<'custom'> & { id?: string },
  custom: Readonly<Record<string, CustomProvider>>,
  common: Common,
): Promise<Provider> {
  const { adapter, id = '', model, maxOutputTokens } = settings;
  const given = Object.hasOwn(custom, adapter) ? custom[adapter] : undefined;
  const agent: CustomAgent = {
    id,
    model,
    maxOutputTokens,
    ...samplingOf(settings),
    ...extrasOf(settings, common.extras),
  };
  if (given) {
    const made = madeFor(given, adapter, agent);
    return isAiSdkModel(made) ? await aiSdkOf(made, common) : made;
  }
  const known = Object.keys(custom).join(', ') || 'none';
  throw new TroupeError(
    'config_invalid',
    `agent "${id}": there is no "${adapter}" in "providers"; known: ${known}`,
  );
}

function extrasOf(
  { effort, headers, headersEnv, providerOptions }: RequestSettings,
  extras: RequestExtras,
): Pick<CustomAgent, (typeof EXTRAS)[number]> {
  return {
    ...(effort && { effort }),
    ...((headers ?? headersEnv) && { headers: extras.headers }),
    ...(providerOptions && { providerOptions }),
  };
}

const EXTRAS = ['effort', 'headers', 'providerOptions'] as const;

function madeFor(given: CustomProvider, adapter: string, agent: CustomAgent): Provider | AiSdkModel {
  if (isAiSdkModel(given)) return given;
  if (isAiSdkVendor(given)) return modelOf(given, agent);
  if (typeof given === 'function') return checkMade(given(agent), adapter, agent);
  const ignored = EXTRAS.find((field) => agent[field] !== undefined);
  if (ignored === undefined) return given;
  const message = `agent "${agent.id}": the provider "${given.name}" is the same for all agents, so it cannot take "${ignored}" of one: write (agent) => defineProvider({ … }) in "providers"`;
  throw new TroupeError('config_invalid', message, { agent: agent.id, field: ignored });
}

function checkMade(made: unknown, adapter: string, { id }: CustomAgent): Provider | AiSdkModel {
  if (isProvider(made)) return made;
  const problem = isAiSdkModel(made) ? versionProblem(made) : NO_PROVIDER;
  if (problem === null) return made as AiSdkModel;
  const message = `agent "${id}": what the function "${adapter}" in "providers" returns ${problem}`;
  throw new TroupeError('config_invalid', message, { agent: id });
}

const NO_PROVIDER =
  'is no provider: return defineProvider({ … }) or a model of the AI SDK, and not a promise of it';

type Env = ProviderContext['env'];
type SettingsOf<P extends ProviderSettings['provider']> = Extract<ProviderSettings, { provider: P }>;

async function anthropicOf(settings: SettingsOf<'anthropic'>, env: Env, common: Common): Promise<Provider> {
  const { baseUrl, thinking, maxOutputTokens, effort } = settings;
  const apiKey = requiredKey(settings, env);
  if (typeof thinking === 'number' && thinking >= maxOutputTokens) {
    throw new TroupeError(
      'config_invalid',
      `thinking is ${thinking} tokens and must be less than maxOutputTokens (${maxOutputTokens}), which includes it`,
    );
  }
  const { createAnthropic } = await import('../../providers/anthropic/anthropic.ts');
  return createAnthropic({
    apiKey,
    ...common,
    ...(baseUrl !== undefined && { baseUrl }),
    ...(thinking && { thinking }),
    ...(effort && { effort }),
  });
}

/** Working directory, server and key of a command-line program. */
function programOptions(
  { cwd, baseUrl, apiKeyEnv }: SettingsOf<'claude-code' | 'codex'>,
  env: Env,
): { cwd?: string; baseUrl?: string; apiKey?: string } {
  const apiKey = readKey(env, apiKeyEnv);
  return {
    ...(cwd !== undefined && { cwd: resolve(cwd) }),
    ...(baseUrl !== undefined && { baseUrl }),
    ...(apiKey !== undefined && { apiKey }),
  };
}

export async function createEmbedder(
  settings: EmbedderSettings,
  { env }: Pick<ProviderContext, 'env'>,
): Promise<Embedder> {
  switch (settings.provider) {
    case 'openai-compatible': {
      const { baseUrl, model } = settings;
      const { createOpenAiEmbedder } = await import('../../providers/openai/client.ts');
      await requirePackages([settings]);
      return createOpenAiEmbedder({ baseUrl, model, apiKey: keyOf(settings, env) });
    }
    case 'ai-sdk': {
      const { createAiSdkEmbedder } = await import('../../providers/ai-sdk/ai-sdk.ts');
      return createAiSdkEmbedder(settings.model);
    }
    case 'custom':
      return settings.embedder;
  }
}

type OpenAiSettings = Pick<SettingsOf<'openai-compatible'>, 'provider' | 'baseUrl' | 'apiKeyEnv'>;

function keyOf(settings: OpenAiSettings, env: Env): string {
  const { baseUrl, apiKeyEnv } = settings;
  return readKey(env, apiKeyEnv) ?? (isPrivateUrl(baseUrl) ? 'none' : missingKey(settings));
}

function requiredKey(settings: { provider: string; apiKeyEnv: string }, env: Env): string {
  return readKey(env, settings.apiKeyEnv) ?? missingKey(settings);
}

/** A remote agent may need no token; a token that the settings name must exist. */
function tokenOf({ provider, apiKeyEnv }: SettingsOf<'a2a'>, env: Env): string | undefined {
  return apiKeyEnv === undefined ? undefined : requiredKey({ provider, apiKeyEnv }, env);
}

function readKey(env: Env, name: string): string | undefined {
  // A newline from a file would make the header invalid.
  return env[name]?.trim() || undefined;
}

function pick(env: Env, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
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

/** Whether the URL is on this machine or in its network, where servers such as Ollama need no key. */
function isPrivateUrl(url: string): boolean {
  const { hostname } = new URL(url);
  return PRIVATE_V4.test(hostname) || PRIVATE_V6.test(hostname) || PRIVATE_NAME.test(hostname);
}
