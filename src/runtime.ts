import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createConversationLog } from './actors/conversation-log.ts';
import { createEngine } from './actors/engine.ts';
import { DEFAULT_LIMITS, type EngineDeps } from './actors/engine-deps.ts';
import { createRegistry } from './actors/registry.ts';
import {
  type AgentDefinition,
  parseTroupe,
  RESERVED_TOOLS,
  unknownFields,
  type TroupeDefinition,
  type TroupeInput,
} from './agents-file.ts';
import { buildCompany } from './build-company.ts';
import { type Clock, systemClock } from './clock.ts';
import { fenceKey } from './context/index.ts';
import { TroupeError } from './errors.ts';
import type { StreamDelta } from './events/index.ts';
import { createTroupeFacade } from './facade.ts';
import type { Provider } from './providers/provider.ts';
import { createProvider } from './providers/registry.ts';
import { createInProcessRouter } from './routing/in-process.ts';
import { createStore } from './store/create-store.ts';
import { lockDataDir } from './store/sqlite/data-lock.ts';
import { openSqliteDriver } from './store/sqlite/sqlite-driver.ts';
import type { Store } from './store/store.ts';
import type { Troupe } from './troupe.ts';

export interface TroupeOptions {
  /** Data directory, or ':memory:' (default): nothing outlives the process. */
  data?: string;
  /** Turns at once. Default 64. */
  concurrency?: number;
  /** False opens the data without taking turns: for import, export and inspection. Default true. */
  work?: boolean;
  /** Accepts a definition without agents, to look at data. Default false. */
  allowEmpty?: boolean;
  /** What an operator should know and no event says. Default: console.warn. */
  onWarning?: (error: unknown, where: string) => void;
  /** Where API keys are looked up. Default: process.env. */
  env?: Record<string, string | undefined>;
  clock?: Clock;
}

/**
 * Composition root: the only place that knows every adapter. Checks everything before the first turn.
 * Throws `config_invalid`, `data_busy`, `data_unwritable`, `store_corrupt`, `store_newer`.
 */
export async function createTroupe(input: TroupeInput, options: TroupeOptions = {}): Promise<Troupe> {
  const { data = ':memory:', concurrency = 64, work = true, env = process.env } = options;
  const onWarning = heard(options.onWarning ?? warn);
  const clock = options.clock ?? systemClock;
  const definition = options.allowEmpty && input.agents.length === 0 ? NOBODY : parseTroupe(input);
  warnOfReserved(definition, onWarning);
  for (const problem of unknownFields(definition.agents)) onWarning(problem, 'agents');
  const { countTokens } = await import('./context/count-tokens.ts');
  const company = buildCompany(
    definition,
    (agent) => (work ? createProvider(agent, { env, clock, readScript }) : restingProvider(agent)),
    countTokens,
  );
  const lock = data === ':memory:' ? null : lockDataDir(data);
  let opened: Store | null = null;
  try {
    const store = createStore(await openSqliteDriver({ path: lock?.paths.database ?? ':memory:' }));
    opened = store;
    const router = createInProcessRouter({ clock });
    const secret = await store.meta('secret', randomBytes(24).toString('hex'));
    const secretOf: EngineDeps['secretOf'] = ({ tenant, conversation }) =>
      fenceKey(secret, `${tenant}/${conversation}`);
    const log = createConversationLog({ store, router, clock, countTokens, onWarning });
    const stopping = new AbortController();
    const deltas = new Set<(delta: StreamDelta) => void>();
    const deps: EngineDeps = {
      store,
      router,
      log,
      company,
      registry: createRegistry({
        secretOf,
        onError: (error, address) => onWarning(error, `machine of @${address.agent}`),
      }),
      clock,
      random: Math.random,
      process: randomUUID().slice(0, 8),
      secretOf,
      countTokens,
      limits: { ...DEFAULT_LIMITS, soleOwner: true, ...definedLimits(definition) },
      stopping: stopping.signal,
      onDelta: (delta) => deltas.forEach((listener) => tellWatcher(listener, delta, onWarning)),
      onWarning,
    };
    const engine = createEngine(deps, stopping);
    if (work) engine.start({ concurrency });
    return createTroupeFacade({
      deps,
      engine,
      deltas,
      fallback: definition.defaults.respondWhenUnaddressed ?? null,
      release: async () => {
        await store.close();
        lock?.release();
      },
    });
  } catch (error) {
    await opened?.close();
    lock?.release();
    throw error;
  }
}

type OnWarning = NonNullable<TroupeOptions['onWarning']>;

/** A listener that throws must not end a renewal or a router, which have nobody to tell. */
function heard(onWarning: OnWarning): OnWarning {
  return (error, where) => {
    try {
      onWarning(error, where);
    } catch (thrown) {
      warn(thrown, 'onWarning');
    }
  };
}

const NOBODY: TroupeDefinition = { agents: [], tools: [], defaults: {}, limits: {} };

function definedLimits({ limits }: TroupeDefinition): Partial<EngineDeps['limits']> {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined));
}

/** Without work no key is needed and no model is called. */
function restingProvider({ provider }: AgentDefinition): Provider {
  return {
    name: provider,
    capabilities: { sessionResumption: false, interleavedSystem: false, toolCalling: false, caching: 'none' },
    stream() {
      throw new Error('a troupe opened with work: false takes no turns');
    },
  };
}

/** One watcher that throws takes nothing from the others. */
function tellWatcher(
  listener: (delta: StreamDelta) => void,
  delta: StreamDelta,
  onWarning: EngineDeps['onWarning'],
): void {
  try {
    listener(delta);
  } catch (error) {
    onWarning(error, 'stream watcher');
  }
}

/** Names of tools that a later version brings are accepted, so that a file written for it loads; they are not offered. */
function warnOfReserved({ agents }: TroupeDefinition, onWarning: OnWarning): void {
  for (const { id, tools } of agents) {
    const missing = tools.filter((name) => RESERVED_TOOLS.some((reserved) => reserved === name));
    if (missing.length > 0)
      onWarning(`@${id}: not in this version, so not offered: ${missing.join(', ')}`, 'tools');
  }
}

function readScript(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TroupeError('config_invalid', `the script ${path} cannot be read: ${why}`, { path }, { cause });
  }
}

function warn(error: unknown, where: string): void {
  console.warn(`troupe: ${where}: ${error instanceof Error ? error.message : String(error)}`);
}
