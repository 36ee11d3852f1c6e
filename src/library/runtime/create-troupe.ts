import * as z from 'zod';
import { featureCommands } from '../../actors/features/features.ts';
import { randomUUID } from 'node:crypto';
import { DEFAULT_LIMITS, type EngineDeps, DEFAULT_PENDING } from '../../actors/actor/engine-deps.ts';
import { type AttendedTroupe, type Clock, systemClock } from '../../base/clock.ts';
import { parseTroupe, type TroupeDefinition, type TroupeInput } from '../config/agents-file.ts';
import { type AppOf, openApp, type OpenApp, type OpenedApp } from '../config/app.ts';
import type {
  AgentName,
  AgentsOf,
  FieldOf,
  IdOf,
  InputFor,
  TemplatesOf,
  ToolOf,
} from '../config/troupe-input.ts';
import { checkOptions, type Event } from '../../events/index.ts';
import { formerIds } from '../config/former-ids.ts';
import { longAnswers, unknownWindows } from '../config/build-agent-registry.ts';
import { messageRouter, schedulesOf } from '../config/coordination-settings.ts';
import { openCredentials } from '../facade/credentials.ts';
import { createTroupeFacade } from '../facade/tenant-facade.ts';
import type { Door } from '../integrations/door.ts';
import type { Integration } from '../integrations/integration.ts';
import { loadNostr } from '../integrations/nostr.ts';
import { createPendingGuard } from '../facade/send-message.ts';
import type { Logger, LogLevel } from '../../base/logger.ts';
import { type Metrics, NO_METRICS } from '../../events/metrics.ts';
import { openSafeFetch, type SafeFetch } from '../../base/net/safe-fetch.ts';
import { ResourceStack } from '../../base/resource-stack.ts';
import { type Constants, openEngine } from './open-engine.ts';
import { openDoors } from './doors.ts';
import { openAgents, openModels, withTemplates } from './open-agents.ts';
import { openServices } from './open-services.ts';
import { hiddenIn, hideInData } from '../config/redact-secrets.ts';
import { openOperators } from './operators.ts';
import { levelIn, openLogger, readLevel, reportRequest } from './open-logger.ts';
import type { StatusOptions, StatusPort } from './status-port.ts';
import type { DataLock } from '../../store/sqlite/data-lock.ts';
import { createIntegrations, type Integrations } from '../facade/integrations.ts';
import { watchWaits } from '../facade/queues.ts';
import { keyValueOf, type ServiceOptions, type Services } from './services.ts';
import { withFormerIds } from '../../store/renamed-agents.ts';
import { countTokens } from '../../context/budget/tokens.ts';
import type { StoreDriver } from '../../store/driver.ts';
import type { Durability } from '../../store/sqlite/sqlite-driver.ts';
import type { TracingOptions } from '../../base/tracing.ts';
import type { Troupe, Answer, Asked, AskOptions, Conversation, NewMessage, Note } from '../troupe.ts';
import type { DataOf, DataSchema } from '../../tools/schema.ts';
import type { Tool } from '../../tools/tool.ts';

/** Options of `createTroupe`. */
export interface TroupeOptions {
  /** Embedded mode: the data directory. Default ':memory:', which keeps nothing when the process ends. */
  data?: string;
  /**
   * Embedded mode: what survives a power loss. `disk`: every accepted event, stop and started tool call. `process`: the
   * end of the process loses nothing, but a power loss loses the last moments, including the record of started tool
   * calls, which may then run twice. Default `disk`.
   */
  durability?: Durability;
  /** Distributed mode: URL of a MongoDB, with the database in its path (default `troupe`). With `redis`, without `data`. */
  mongodb?: string;
  /**
   * Distributed mode: URL of a PostgreSQL, instead of `mongodb`, with or without `redis`. Its parameter `schema` names
   * the schema (default `troupe`).
   */
  postgres?: string;
  /**
   * A database of the program's own, instead of `data`, `mongodb` and `postgres`: opened by the program, closed with
   * the troupe. How to make one: see `troupe/integrations`. Without `redis`, other processes are not notified of
   * messages. Default: none.
   */
  store?: StoreDriver;
  /** Distributed mode: URL of a Redis that evicts nothing: `redis://`, `redis+cluster://` or `redis+sentinel://`, see docs/how-to/operations.md. */
  redis?: string;
  /** Distributed mode: processes with the same prefix in Redis and the same database are one troupe. Default `troupe`. */
  prefix?: string;
  /** Most concurrent turns of this process. Default 64. */
  concurrency?: number;
  /** False: opens the data without taking turns, for import, export and inspection. Default true. */
  work?: boolean;
  /** Accepts a definition without agents, to inspect existing data. Default false. */
  allowEmpty?: boolean;
  /** Receives warnings that no event records. Default: `logger`, else console.warn. */
  onWarning?: (error: unknown, where: string) => void;
  /** Environment variables, for API keys among others. Default: process.env. */
  env?: Record<string, string | undefined>;
  /** File to which every model call is written, with keys redacted. An existing recording is continued. */
  record?: string | undefined;
  /** Recordings that answer instead of models. No vendor is contacted and no key is needed. */
  replay?: string | readonly string[] | undefined;
  /** Receives counters and timings. Default: the metrics of the status port, if there is one. */
  metrics?: Metrics;
  /**
   * Serves `/healthz`, `/readyz` and `/metrics` of this process over HTTP until it has stopped, as `troupe worker`
   * does, and writes log lines unless `logger` says otherwise. `{}`: on 127.0.0.1, port 4601 or the first free one
   * after it. Default: not served, and its code not loaded.
   */
  status?: StatusOptions | undefined;
  /** Sends spans to the OpenTelemetry SDK that the application has registered. Needs `@opentelemetry/api`. Default: none. */
  tracing?: boolean | TracingOptions;
  /**
   * Receives a line per turn, and warnings unless `onWarning` is given. A level: JSON lines from this level on are
   * written to stderr; `silent`: neither lines nor warnings. Default: none; with `status` the level in TROUPE_LOG, else
   * `info`.
   */
  logger?: Logger | LogLevel | 'silent';
  /** Connections to other systems, such as `nostr(settings)` of `@troupe/nostr`. They run in processes that take turns. */
  integrations?: readonly Integration[] | undefined;
  /** Called when this process can take no more wakes and should be restarted. Default: a warning. */
  onDeaf?: () => void;
  /** Source of time; in tests `createTestClock()` of `@troupe/testing`. Default: the clock of the system. */
  clock?: Clock;
  /**
   * What tools receive as `context.app` in this process, such as a database or a client. Never stored, and not closed
   * by the troupe. Default: what `app` of the definition opens.
   */
  app?: unknown;
}

/** The options of `createTroupe` for these tools: `app` is optional only if the definition has it or no tool needs it. */
type OptionsFor<Given extends Tool, Opener> = [Given] extends [never]
  ? [options?: TroupeOptions]
  : unknown extends AppOf<Given>
    ? [options?: TroupeOptions]
    : [Opener] extends [undefined]
      ? [options: TroupeOptions & { app: AppOf<Given> }]
      : [options?: TroupeOptions & { app?: AppOf<Given> }];

/**
 * The composition root. It checks the definition before anything is opened, then opens the models, the services, the
 * agents' tools, the engine and the integrations, in this order; `close` closes them in the reverse order. Throws
 * `config_invalid`, `data_busy`, `data_unwritable`, `store_corrupt`, `store_newer`, `store_unavailable`,
 * `queue_unavailable`, `server_unsuitable`.
 */
export async function createTroupe<const D extends object = TroupeInput>(
  definition: InputFor<D, { app?: OpenApp<AppOf<ToolOf<D>>> | undefined }>,
  ...[options = {}]: OptionsFor<ToolOf<D>, FieldOf<D, 'app'>>
): Promise<TroupeOf<D>> {
  checkOptions(Options, options, 'createTroupe', 'config_invalid');
  // The types that the compiler infers for the agents hold for every troupe of this definition.
  return (await openTroupe(definition as TroupeInput, options)) as TroupeOf<D>;
}

/** Options of `openTroupe`. */
export interface OpenOptions extends TroupeOptions {
  /** The caller's lock of the data directory. It stays locked when the troupe closes. */
  lock?: DataLock | undefined;
  /** Secret of a new store, for tests that compare prompts byte by byte. Default: a random one. */
  newSecret?: string | undefined;
  /** Constants that no setting changes, for tests. */
  constants?: Constants | undefined;
  /** What tools receive as `context.app`; the caller closes it. Default: from the definition or `app`. */
  openedApp?: OpenedApp | undefined;
}

/** Prompts contain numbers derived from the secret of the store. */
const TEST_SECRET = 'troupe-evals';

/**
 * Opens a troupe as `createTroupe` does, with the same secret in every new store, so that two runs of a test give the
 * same prompts, byte by byte. Throws `config_invalid`.
 */
export function openTestTroupe(
  input: TroupeInput,
  options: Omit<OpenOptions, 'lock' | 'newSecret' | 'openedApp'> = {},
): Promise<Troupe> {
  return openTroupe(input, { ...options, newSecret: TEST_SECRET });
}

/** Like `createTroupe`, for a definition whose types are not known. */
export async function openTroupe(input: TroupeInput, options: OpenOptions): Promise<Troupe> {
  const { work = true, concurrency = 64, env = process.env, clock = systemClock } = options;
  const definition = readDefinition(input, options);
  const opened = new ResourceStack();
  const status = await statusPort(options, env, opened);
  const metrics = watchWaits(status?.metrics ?? options.metrics ?? NO_METRICS, clock);
  const { doors, integrations } = await openOutside(definition, options);
  const everyone = { ...withTemplates(definition), integrations };
  const owner = randomUUID().slice(0, 8);
  const operators = await operatorsOf(everyone, options, { env, process: owner });
  const { onWarning } = operators;
  warnOfSettings(definition, work, onWarning);
  try {
    const { app } = await openAppOf(definition, options, opened);
    const models = await openModels(everyone, { ...options, work, env, clock, onWarning });
    opened.defer(() => models.close());
    const services = await servicesOf(definition, options, { clock, metrics, onWarning });
    opened.defer(() => services.close());
    const agents = await openAgents(definition, {
      integrations,
      providerOf: models.providerOf,
      urls: [options.mongodb, options.postgres, options.redis],
      opened: work ? opened : null,
      policy: options.constants?.policy,
      env,
      clock,
      onWarning,
    });
    const { deps, engine, pending, tenants, rootKeyValue, secret, ...live } = await openEngine({
      definition,
      services,
      agents,
      embedder: models.embedder,
      operators,
      clock,
      metrics,
      given: { ...options, app },
      process: owner,
      opened,
    });
    if (work) engine.start({ concurrency });
    const fetch = openFetch(definition, opened);
    const running = createIntegrations({
      integrations,
      keyValueOf: (tenant) => keyValueOf(services.store, tenant),
      webhooks: definition.webhooks,
      random: Math.random,
      tenants,
      secret,
      clock,
      env,
      owner,
      metrics,
      onWarning,
    });
    opened.defer(() => running.close());
    const troupe = createTroupeFacade({
      commands: featureCommands(),
      ...live,
      deps,
      engine,
      integrations: running,
      fetch,
      tenants,
      ...facadeSettings(definition, doors),
      messageRouter: messageRouter(definition.routing, agents),
      waits: (present) => metrics.waits(present),
      pending: createPendingGuard({ pending, store: services.store }),
      credentials: openCredentials(rootKeyValue, { clock, access: definition.access }),
      release: () => opened.close(),
      status,
    });
    await startWork(running, troupe, { definition, deps, work, opened, status });
    return troupe;
  } catch (error) {
    await opened.close().catch((failure: unknown) => onWarning(failure, 'close'));
    throw error;
  }
}

/** Null if none is requested. Throws `config_invalid`. */
async function statusPort(
  { status, metrics }: TroupeOptions,
  env: Record<string, string | undefined>,
  opened: ResourceStack,
): Promise<StatusPort | null> {
  if (status === undefined) return null;
  // Loaded only here, so that a process without it does not load the API.
  const { createStatusPort } = await import('./status-port.ts');
  const port = createStatusPort(status, { env, metrics });
  // Closed last: it reports that the process is stopping.
  opened.defer(() => port.close());
  return port;
}

/** Throws `config_invalid`. */
async function operatorsOf(
  everyone: Parameters<typeof openOperators>[0],
  options: TroupeOptions,
  { env, process }: Pick<Parameters<typeof openOperators>[1], 'env' | 'process'>,
): ReturnType<typeof openOperators> {
  const { logger = options.status && (levelIn(env) ?? 'info'), ...given } = options;
  const lines =
    typeof logger === 'string' ? await openLogger(readLevel(logger, 'logger'), env) : logger && { logger };
  return openOperators(everyone, { ...lines, ...given, env, process });
}

/** If agents of the definition have former ids, the store translates them. */
async function servicesOf(
  definition: TroupeDefinition,
  options: OpenOptions,
  parts: Pick<ServiceOptions, 'clock' | 'metrics' | 'onWarning'>,
): Promise<Services> {
  const settings = serviceOptions(definition, { ...parts, onDeaf: options.onDeaf });
  const services = await openServices(options, settings);
  const former = formerIds(definition.agents);
  if (!former) return services;
  const { soleOwner = false } = services.limits;
  return { ...services, store: withFormerIds(services.store, { former, soleOwner, countTokens }) };
}

const NO_AGENTS: TroupeDefinition = {
  agents: [],
  tools: [],
  defaults: {},
  limits: {},
  context: { summaries: 'model', retrieval: true },
};

const Text = z.string().optional();
const Truth = z.boolean().optional();
const Given = z.unknown().optional();
const Options = z.strictObject({
  data: Text,
  durability: z.enum(['disk', 'process']).optional(),
  mongodb: Text,
  postgres: Text,
  store: Given,
  redis: Text,
  prefix: Text,
  concurrency: z.int().positive().optional(),
  work: Truth,
  allowEmpty: Truth,
  onWarning: Given,
  env: Given,
  record: Text,
  replay: Given,
  metrics: Given,
  status: z.strictObject({ port: z.int().min(0).max(65_535).optional(), host: Text }).optional(),
  tracing: Given,
  logger: Given,
  integrations: z.array(z.unknown()).optional(),
  onDeaf: Given,
  clock: Given,
  app: Given,
} satisfies Record<keyof TroupeOptions, z.ZodType>);

function readDefinition(input: TroupeInput, { allowEmpty = false }: TroupeOptions): TroupeDefinition {
  const isEmpty = Array.isArray(input?.agents) && input.agents.length === 0;
  return allowEmpty && isEmpty ? NO_AGENTS : parseTroupe(input);
}

function warnOfSettings(
  { agents, templates = [] }: TroupeDefinition,
  work: boolean,
  onWarning: EngineDeps['onWarning'],
): void {
  if (!work) return;
  for (const problem of [
    ...unknownWindows([...agents, ...templates]),
    ...longAnswers([...agents, ...templates]),
  ])
    onWarning(problem, 'models');
}

/** Least number of wakes held for one tenant, whatever its limit: agents that answer each other need some. */
const MIN_HELD_WAKES = 1_000;

function serviceOptions(
  { limits }: TroupeDefinition,
  parts: Omit<ServiceOptions, 'caps' | 'leaseMs' | 'mostWaiting' | 'onDeaf'> & {
    onDeaf: TroupeOptions['onDeaf'];
  },
): ServiceOptions {
  const { turnsPerTenant, pendingPerTenant = DEFAULT_PENDING, providers } = limits;
  const { leaseMs = DEFAULT_LIMITS.leaseMs } = limits;
  const warn = () => parts.onWarning('this process takes no more wakes: restart it', 'queue');
  return {
    ...parts,
    caps: { turnsPerTenant, providers },
    leaseMs,
    mostWaiting: Math.max(MIN_HELD_WAKES, 2 * pendingPerTenant),
    onDeaf: parts.onDeaf ?? warn,
  };
}

function facadeSettings(definition: TroupeDefinition, doors: readonly Door[]) {
  const { defaults, trust, workflows = [] } = definition;
  const { respondWhenUnaddressed = null, afterHandoff } = defaults;
  const sticks = afterHandoff !== 'default';
  const texts = hiddenIn(definition);
  const hide = texts && ((events: readonly Event[]) => hideInData(events, texts));
  return { doors, fallback: respondWhenUnaddressed, hide, sticks, trust: trust?.people ?? null, workflows };
}

/** The doors, and the integrations of the options, of the doors, and of the setting `nostr`. Throws `config_invalid`, `package_missing`. */
async function openOutside(
  definition: TroupeDefinition,
  { integrations = [] }: TroupeOptions,
): Promise<{ doors: readonly Door[]; integrations: readonly Integration[] }> {
  const { nostr } = definition;
  const doors = await openDoors(definition.doors);
  const all = [...integrations, ...doors.flatMap(({ integration }) => integration ?? [])];
  if (nostr !== undefined) all.push((await loadNostr()).nostr(nostr));
  return { doors, integrations: all };
}

/** A troupe that takes no turns needs `app` only for prompts. If it may also have no agents, `app` is not opened. */
async function openAppOf(
  definition: TroupeDefinition,
  { openedApp, app, work = true, allowEmpty = false }: OpenOptions,
  opened: ResourceStack,
): Promise<Pick<OpenedApp, 'app'>> {
  if (openedApp) return openedApp;
  if (!work && allowEmpty) return { app };
  const own = await openApp(definition, app);
  opened.defer(() => own.close());
  return own;
}

function openFetch({ fetch: settings }: TroupeDefinition, opened: ResourceStack): SafeFetch | null {
  if (!settings) return null;
  const fetch = openSafeFetch(settings);
  opened.defer(() => fetch.close());
  return fetch;
}

interface Beginning {
  definition: TroupeDefinition;
  deps: Pick<EngineDeps, 'store' | 'clock' | 'logger' | 'stopping' | 'onWarning'>;
  work: boolean;
  opened: ResourceStack;
  status: StatusPort | null;
}

/** A clock that a test moves waits for this troupe until it is closed. */
async function startWork(
  integrations: Integrations,
  troupe: Troupe,
  { definition, deps, work, opened, status }: Beginning,
): Promise<void> {
  const { moved } = deps.clock;
  if (moved)
    opened.defer(moved.attend({ ...timesOf(definition, deps), rest: () => troupe.idle(), looks: work }));
  try {
    await status?.listen(troupe, {
      signal: deps.stopping,
      limits: definition.access?.limits,
      onError: (error) => reportRequest(deps.logger, error),
    });
    if (work) await integrations.start(troupe);
  } catch (error) {
    await troupe.close().catch((failure: unknown) => deps.onWarning(failure, 'close'));
    throw error;
  }
}

/** Most actors with due timers that are counted at once. */
const MOST_DUE = 1_000;

/** What a clock that a test moves needs to know: how much is due by a time. */
function timesOf(
  { schedules = [] }: TroupeDefinition,
  { store, clock }: Beginning['deps'],
): Pick<AttendedTroupe, 'dueBy'> {
  const times = schedulesOf(schedules);
  return {
    async dueBy(at) {
      const now = clock.now();
      const due = await store.due({ now, clock: at, since: Number.MAX_SAFE_INTEGER, limit: MOST_DUE });
      return due.length + times.filter((schedule) => (schedule.lastBy(at) ?? now) > now).length;
    },
  };
}

/** A troupe whose agents the compiler knows: `to` accepts only their ids, and the data of replies have the types of their schemas. */
export interface TypedTroupe<Id extends string, R extends Record<Id, unknown>> extends Omit<
  Troupe,
  'send' | 'ask' | 'stream' | 'conversation'
> {
  /** Stores a message and wakes the agents that it addresses; does not wait for their turns. As `Troupe.send`. */
  send(conversation: string, message: NewMessage<Id> | string): ReturnType<Troupe['send']>;
  /**
   * Sends a message and waits for the answer. `data` has the type of the `reply` schema of the agents that `to` names;
   * if one of them may hand over, or `to` is left out, of any agent. As `Troupe.ask`.
   */
  ask<To extends Id = Id>(
    conversation: string,
    message: Asked<To>,
    options?: AskOptions,
  ): Promise<Answer<R[To]>>;
  /** As `ask`, but yields what happens meanwhile; the generator returns the answer. */
  stream<To extends Id = Id>(
    conversation: string,
    message: Asked<To>,
    options?: AskOptions,
  ): AsyncGenerator<Note, Answer<R[To]>>;
  /** The methods for one conversation, without its id. As `Troupe.conversation`. */
  conversation(id: string): TypedConversation<Id, R>;
}

/** A conversation of a troupe whose agents the compiler knows. */
export interface TypedConversation<Id extends string, R extends Record<Id, unknown>> extends Omit<
  Conversation,
  'send' | 'ask' | 'stream'
> {
  /** As `send` of the troupe. */
  send(message: NewMessage<Id> | string): ReturnType<Troupe['send']>;
  /** As `ask` of the troupe. */
  ask<To extends Id = Id>(message: Asked<To>, options?: AskOptions): Promise<Answer<R[To]>>;
  /** As `stream` of the troupe. */
  stream<To extends Id = Id>(message: Asked<To>, options?: AskOptions): AsyncGenerator<Note, Answer<R[To]>>;
}

/** The troupe of a definition. The ids are strings for agents of a file, of a list built at run time, or of templates. */
type TroupeOf<D> = [AgentsOf<D>] extends [never]
  ? Troupe
  : string extends AgentName<D>
    ? Troupe
    : [TemplatesOf<D>] extends [never]
      ? TypedTroupe<AgentName<D>, RepliesOf<AgentsOf<D>>>
      : Troupe;

/** Types of the data of replies, by id of the agent, including former ids. */
type RepliesOf<Agents> = {
  readonly [Id in IdOf<Agents>]: DataOfAgent<
    MayHandOver<WithId<Agents, Id>> extends true ? Agents : WithId<Agents, Id>
  >;
};
type WithId<Agent, Id> = Agent extends unknown ? (Id extends IdOf<Agent> ? Agent : never) : never;

type MayHandOver<A> = A extends { tools: readonly (infer Name)[] }
  ? 'handoff' extends Name
    ? true
    : false
  : false;

type DataOfAgent<A> = A extends { reply: infer Schema extends DataSchema } ? DataOf<Schema> : undefined;
