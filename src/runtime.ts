import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createBudgetLedger } from './actors/budget/ledger.ts';
import { countTokens, loadTokenizer } from './context/tokens.ts';
import { createCalibrationBook } from './actors/engine/calibration-book.ts';
import { createColdViews } from './actors/log/cold-views.ts';
import { createConversationLog } from './actors/log/conversation-log.ts';
import { createMemorySearch } from './actors/memory/memory-search.ts';
import { createEngine } from './actors/engine/engine.ts';
import {
  DEFAULT_LIMITS,
  type EngineDeps,
  type EngineLimits,
  MAX_TREE_TOKENS,
} from './actors/engine/engine-deps.ts';
import { createRedaction } from './actors/log/redaction.ts';
import { createRegistry } from './actors/engine/registry.ts';
import {
  type AgentDefinition,
  parseTroupe,
  unknownFields,
  type TroupeDefinition,
  type TroupeInput,
} from './config/agents-file.ts';
import { buildAgentRegistry, unknownWindows } from './config/build-agent-registry.ts';
import { type Clock, systemClock } from './clock.ts';
import { fenceKey } from './context/index.ts';
import { TroupeError } from './errors.ts';
import { createTenants, openCredentials } from './facade/credentials.ts';
import { DEFAULT_TENANT, type StateNote, type StreamDelta } from './events/index.ts';
import { createTroupeFacade } from './facade/facade.ts';
import type { Logger } from './logger.ts';
import { messageRouter, schedulesOf } from './config/coordination-settings.ts';
import { type Metrics, NO_METRICS } from './metrics.ts';
import { createPendingCount, DEFAULT_PENDING } from './actors/engine/pending-count.ts';
import { createTaskTrees } from './actors/tasks/task-trees.ts';
import { createPendingGuard } from './facade/pending-guard.ts';
import { openSafeFetch } from './net/safe-fetch.ts';
import { type Provider, STATELESS } from './providers/provider.ts';
import { watchWaits } from './runtime/queue-waits.ts';
import { openEmbedded } from './runtime/embedded.ts';
import { hideInTools, type ModelSettings } from './runtime/secrets.ts';
import { openMcp } from './runtime/mcp.ts';
import { keyValueOf } from './runtime/key-value-of.ts';
import { createOutside, type Outside } from './runtime/outside.ts';
import { openOperators } from './runtime/operators.ts';
import type { ModelOptions, Models } from './runtime/providers.ts';
import type { ServiceOptions, Services } from './runtime/services.ts';
import type { TracingOptions } from './tracing.ts';
import type { Troupe } from './troupe.ts';

export interface TroupeOptions {
  /** Embedded mode: the data directory, or ':memory:' (default): nothing outlives the process. */
  data?: string;
  /** Distributed mode: URL of a MongoDB, with the database in its path (default `troupe`). With `redis`, without `data`. */
  mongodb?: string;
  /** Distributed mode: URL of a Redis that evicts nothing. */
  redis?: string;
  /** Distributed mode: processes with the same prefix and database are one troupe. Default `troupe`. */
  prefix?: string;
  /** Turns at once. Default 64. */
  concurrency?: number;
  /** False opens the data without taking turns: for import, export and inspection. Default true. */
  work?: boolean;
  /** Accepts a definition without agents, to look at data. Default false. */
  allowEmpty?: boolean;
  /** What an operator should know and no event says. Default: `logger`, else console.warn. */
  onWarning?: (error: unknown, where: string) => void;
  /** Where API keys are looked up. Default: process.env. */
  env?: Record<string, string | undefined>;
  /** A file to which every model call is written, with keys redacted; one that is a recording is continued. */
  record?: string | undefined;
  /** Recordings that answer instead of models: no vendor is contacted and no key needed. */
  replay?: string | readonly string[] | undefined;
  /** Where operators count. Default: nowhere. */
  metrics?: Metrics;
  /** Spans, to the OpenTelemetry SDK that the application has registered. Default: none. Wants `@opentelemetry/api`. */
  tracing?: boolean | TracingOptions;
  /** Lines for operators: how turns went, and warnings unless `onWarning` is given. Default: none. */
  logger?: Logger;
  /** Called when this process takes no wakes any more and should be started anew. Default: a warning. */
  onDeaf?: () => void;
  clock?: Clock;
}

/**
 * Composition root: checks everything before the first turn, opens the embedded or the distributed services, and puts
 * the engine and its public door on top. Throws `config_invalid`, `data_busy`, `data_unwritable`, `store_corrupt`,
 * `store_newer`, `store_unavailable`, `queue_unavailable`, `server_unsuitable`.
 */
export async function createTroupe(input: TroupeInput, options: TroupeOptions = {}): Promise<Troupe> {
  const { concurrency = 64, work = true, env = process.env } = options;
  const clock = options.clock ?? systemClock;
  const metrics = watchWaits(options.metrics ?? NO_METRICS, clock);
  const definition = options.allowEmpty && input.agents.length === 0 ? NOBODY : parseTroupe(input);
  const { templates = [], schedules = [], lifecycle = {} } = definition;
  const everyone = { ...definition, agents: [...definition.agents, ...templates] };
  const ownId = randomUUID().slice(0, 8);
  const { onWarning, ...operators } = await openOperators(everyone, { ...options, env, process: ownId });
  for (const problem of unknownFields(definition.agents)) onWarning(problem, 'agents');
  for (const problem of unknownFields(templates, 'templates')) onWarning(problem, 'templates');
  if (work) for (const problem of unknownWindows(everyone.agents)) onWarning(problem, 'models');
  const {
    turnsPerTenant,
    pendingPerTenant,
    maxTreeTokens = MAX_TREE_TOKENS,
    providers,
    ...own
  } = definition.limits;
  // Whoever serves is ready when it can answer at once; commands that only look around count nothing.
  if (work || options.mongodb !== undefined) await loadTokenizer();
  const opened = new AsyncDisposableStack();
  try {
    const given = { ...options, env, clock, readScript, onWarning };
    const vendors = work ? await loadModels(everyone, given) : RESTING;
    opened.defer(() => vendors.close());
    const { providerOf, embedder } = vendors;
    const services = await openServices(options, {
      clock,
      caps: { turnsPerTenant, providers },
      mostWaiting: Math.max(LEAST_HELD, 2 * (pendingPerTenant ?? DEFAULT_PENDING)),
      leaseMs: own.leaseMs ?? DEFAULT_LIMITS.leaseMs,
      metrics,
      onWarning,
      onDeaf:
        options.onDeaf ?? (() => onWarning('no wakes are taken any more: start this process anew', 'queue')),
    });
    opened.defer(() => services.close());
    const mcp = work
      ? opened.use(await openMcp(everyone, { env, clock, onWarning }))
      : { definition: everyone };
    const granted = mcp.definition.agents;
    const named = definition.agents.length;
    const agents = buildAgentRegistry(
      {
        ...mcp.definition,
        tools: mcp.definition.tools.map(hideInTools(everyone, env, [options.mongodb, options.redis])),
        agents: granted.slice(0, named),
        templates: granted.slice(named),
      },
      providerOf,
      countTokens,
    );
    const { store, router, broadcast, admission } = services;
    const secret = await store.meta('secret', randomBytes(24).toString('hex'));
    const secretOf: EngineDeps['secretOf'] = ({ tenant, conversation }) =>
      fenceKey(secret, `${tenant}/${conversation}`);
    const models = createCalibrationBook({ store, clock, onWarning });
    const limits: EngineLimits = { ...DEFAULT_LIMITS, ...services.limits, ...defined(own) };
    const caps = { ...definition.budgets, tree: { tokens: maxTreeTokens } };
    const trees = createTaskTrees({ store, clock, random: Math.random, limits });
    const pending = createPendingCount({ router, clock, limit: pendingPerTenant });
    const budgets = createBudgetLedger({ store, clock, random: Math.random, metrics, onWarning, caps });
    const memory = createMemorySearch({ ...definition.context.embedder, embedder, clock, onWarning });
    const redaction = definition.redact && createRedaction(definition.redact, onWarning);
    const stopping = new AbortController();
    const deltas = new Set<(delta: StreamDelta) => void>();
    const states = new Set<(note: StateNote) => void>();
    const tellAll = (delta: StreamDelta) =>
      deltas.forEach((listener) => tellWatcher(listener, delta, onWarning));
    const tellState = (note: StateNote) =>
      states.forEach((listener) => tellWatcher(listener, note, onWarning));
    broadcast.subscribe((notice) => {
      if (notice.type === 'delta') tellAll(notice.delta);
      if (notice.type === 'state') tellState(notice.note);
    });
    const rootNotes = keyValueOf(store, DEFAULT_TENANT);
    const tenants = createTenants(rootNotes);
    const deps: EngineDeps = {
      store,
      router,
      broadcast,
      admission,
      metrics,
      ...operators,
      redaction,
      log: createConversationLog({
        store,
        router,
        broadcast,
        clock,
        countTokens,
        metrics,
        redaction,
        onWarning,
      }),
      agents,
      registry: createRegistry({ secretOf }),
      clock,
      random: Math.random,
      process: ownId,
      secretOf,
      countTokens,
      models,
      budgets,
      trees,
      pending,
      memory,
      limits,
      schedules: schedulesOf(schedules),
      tenants: () => tenants.list(),
      lifecycle,
      trust: definition.trust?.people ?? null,
      stopping: stopping.signal,
      onDelta(delta) {
        tellAll(delta);
        broadcast.publish({ type: 'delta', delta });
      },
      onState(note) {
        tellState(note);
        broadcast.publish({ type: 'state', note });
      },
      onWarning,
    };
    deps.coldViews = createColdViews(deps.log, secretOf, clock);
    const engine = createEngine(deps, stopping);
    if (work) engine.start({ concurrency });
    const fetch = definition.fetch ? openSafeFetch(definition.fetch) : null;
    const outside = createOutside({
      keyValueOf: (tenant) => keyValueOf(store, tenant),
      tenants,
      secret,
      settings: definition,
      clock,
      random: Math.random,
      env,
      owner: ownId,
      metrics,
      onWarning,
    });
    const troupe = createTroupeFacade({
      outside,
      fetch,
      deps,
      engine,
      deltas,
      states,
      waits: () => metrics.waits(),
      fallback: definition.defaults.respondWhenUnaddressed ?? null,
      trust: definition.trust?.people ?? null,
      workflows: definition.workflows ?? [],
      messageRouter: messageRouter(definition.routing, agents),
      tenants,
      pending: createPendingGuard({ pending, store }),
      credentials: openCredentials(rootNotes, { clock, access: definition.access }),
      release: async () => {
        await outside.close();
        await fetch?.close();
        await memory[Symbol.asyncDispose]();
        await models.flush();
        await opened.disposeAsync();
      },
    });
    if (work) await startOutside(outside, troupe);
    return troupe;
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

/** Wakes of one tenant that are held whatever is said of how many may wait: agents that answer each other need some. */
const LEAST_HELD = 1_000;

async function startOutside(outside: Outside, troupe: Troupe): Promise<void> {
  try {
    await outside.start(troupe);
  } catch (error) {
    await troupe.close();
    throw error;
  }
}

async function openServices(options: TroupeOptions, parts: ServiceOptions): Promise<Services> {
  const { data, mongodb, redis, prefix = 'troupe' } = options;
  if (mongodb === undefined && redis === undefined) return openEmbedded(data ?? ':memory:', parts);
  if (mongodb === undefined || redis === undefined) {
    const [given, missing] = mongodb === undefined ? ['redis', 'mongodb'] : ['mongodb', 'redis'];
    const message = `${given} is given and ${missing} is not: the distributed mode needs both; one process alone needs neither`;
    throw new TroupeError('config_invalid', message);
  }
  if (data !== undefined) {
    const message = 'data is the directory of the embedded mode; with mongodb and redis leave it out';
    throw new TroupeError('config_invalid', message);
  }
  // Only who asks for it pays for loading the drivers.
  const { openDistributed } = await import('./runtime/distributed.ts');
  return openDistributed({ mongodb, redis, prefix }, parts);
}

const NOBODY: TroupeDefinition = {
  agents: [],
  tools: [],
  defaults: {},
  limits: {},
  context: { summaries: 'model' },
};

function defined(limits: Record<string, number | undefined>): Partial<EngineDeps['limits']> {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined));
}

/** Without work no key is needed and no model is called. */
function restingProvider({ provider }: AgentDefinition): Provider {
  return {
    name: provider,
    capabilities: { ...STATELESS, toolCalling: false, caching: 'none', reportsUsage: false },
    stream() {
      throw new Error('a troupe opened with work: false takes no turns');
    },
  };
}

/** Their code is loaded where somebody takes turns. */
async function loadModels(settings: ModelSettings, options: ModelOptions): Promise<Models> {
  return (await import('./runtime/providers.ts')).openModels(settings, options);
}

const RESTING: Models = { providerOf: restingProvider, embedder: null, close: () => Promise.resolve() };

/** One watcher that throws takes nothing from the others. */
function tellWatcher<T>(listener: (told: T) => void, told: T, onWarning: EngineDeps['onWarning']): void {
  try {
    listener(told);
  } catch (error) {
    onWarning(error, 'stream watcher');
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
