import { join, resolve } from 'node:path';
import type { AgentDefinition } from '../config/agent-input.ts';
import { TroupeError } from '../../base/errors.ts';
import type { Embedder } from '../../providers/embedder.ts';
import type { Provider } from '../../providers/provider.ts';
import { createRedact, type Redact } from '../../providers/redact.ts';
import { hiddenIn } from '../config/redact-secrets.ts';
import { createEmbedder, createProvider, type ProviderContext, requirePackages } from './registry.ts';
import { type ModelSettings, secretValues } from './secrets.ts';
import { mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { closeToOthers, makePrivateDir } from '../../base/private-files.ts';
import type { ProviderSettings } from '../../providers/settings.ts';

export interface ModelOptions extends Omit<ProviderContext, 'home'> {
  /** Data directory of the embedded mode. */
  data?: string | undefined;
  /** URLs of the distributed mode. */
  mongodb?: string | undefined;
  postgres?: string | undefined;
  prefix?: string | undefined;
  record?: string | undefined;
  replay?: string | readonly string[] | undefined;
  onWarning: (error: unknown, where: string) => void;
}

export interface Models {
  providerOf: (agent: AgentDefinition) => Provider;
  embedder: Embedder | null;
  /** Ends the programs and connections of the providers. */
  close(): Promise<void>;
}

/** The models of a definition: those of the vendors, recorded if `record` is set, or a replay. Throws `config_invalid`, `package_missing`. */
export async function createModels(definition: ModelSettings, options: ModelOptions): Promise<Models> {
  const { agents, context: settings, providers: custom } = definition;
  const { replay, env, clock, onWarning } = options;
  const known = createRedact(secretValues(definition, env));
  const hide = hiddenIn(definition);
  const redact: Redact = hide ? (text) => hide(known(text)) : known;
  if (settings.embedder && (options.record !== undefined || replay !== undefined))
    onWarning('vectors are not recorded: a replay finds memories by their words alone', 'recording');
  if (replay !== undefined) {
    if (options.record !== undefined)
      throw new TroupeError('config_invalid', 'record and replay cannot be used together');
    const { createReplay, readRecording } = await import('../../providers/recording.ts');
    const replayed = createReplay([replay].flat().map(readRecording), redact);
    const providerOf: Models['providerOf'] = ({ id, provider }) => replayed.provider(id, provider);
    return { providerOf, embedder: null, close: () => Promise.resolve() };
  }
  await requirePackages(agents);
  const home = sessionHome(agents, options);
  const make = (agent: AgentDefinition) =>
    createProvider(agent, { ...options, custom, home: join(home.dir, agent.id) });
  const made = new Map<string, Provider>();
  for (const agent of agents) made.set(agent.id, await make(agent));
  const embedder = settings.embedder ? await createEmbedder(settings.embedder, options) : null;
  if (options.record !== undefined) {
    const known = [...made].map(([id, { name, capabilities, home }]) => {
      return [id, { name, capabilities, ...(home !== undefined && { home }) }] as const;
    });
    const at = new Date(clock.now()).toISOString();
    const { openRecording, record } = await import('../../providers/recording.ts');
    const write = openRecording(options.record, { at, agents: Object.fromEntries(known) });
    for (const [id, provider] of made) made.set(id, record(provider, { write, redact, clock, onWarning }));
  }
  return {
    providerOf: ({ id }) => made.get(id)!,
    embedder,
    async close() {
      await Promise.all([...made.values()].map(async (provider) => provider.close?.()));
      home.remove();
    },
  };
}

interface SessionHome {
  dir: string;
  /** Removes a directory that belongs to this process only; keeps any other. */
  remove(): void;
}

const KEEPS_SESSIONS: Record<ProviderSettings['provider'], boolean> = {
  'claude-code': true,
  codex: true,
  anthropic: false,
  openai: false,
  'openai-compatible': false,
  'ai-sdk': false,
  custom: false,
  scripted: false,
  a2a: false,
};

/**
 * Embedded mode: a directory beside the data. Distributed mode: a directory in the user's state, so that a restarted
 * process finds its sessions. In memory: a temporary directory. None is created if no agent needs one.
 */
function sessionHome(
  agents: readonly Pick<ProviderSettings, 'provider'>[],
  {
    data,
    mongodb,
    postgres,
    prefix = 'troupe',
  }: Pick<ModelOptions, 'data' | 'mongodb' | 'postgres' | 'prefix'>,
): SessionHome {
  const keep = (dir: string): SessionHome => {
    makePrivateDir(dir);
    closeToOthers(dir);
    return { dir, remove: () => undefined };
  };
  if (!agents.some(({ provider }) => KEEPS_SESSIONS[provider])) return { dir: '', remove: () => undefined };
  if ((mongodb ?? postgres) !== undefined) return keep(join(stateDir(), 'troupe', prefix, 'sessions'));
  if (data !== undefined && data !== ':memory:') return keep(resolve(data, 'sessions'));
  const dir = mkdtempSync(join(tmpdir(), 'troupe-sessions-'));
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

function stateDir(): string {
  return process.env['XDG_STATE_HOME'] ?? join(homedir(), '.local', 'state');
}
