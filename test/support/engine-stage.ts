import {
  createForTools,
  DEFAULT_LIMITS,
  type EngineDeps,
  type EngineLimits,
} from '../../src/actors/actor/engine-deps.ts';
import type { InstructionsFunction } from '../../src/actors/actor/agent-runtime.ts';
import type { Schedule } from '../../src/actors/attempt/feature-types.ts';
import type { TurnDeps } from '../../src/actors/attempt/turn-run.ts';
import { featureCommands, openFeatures } from '../../src/actors/features/features.ts';
import { createCalibrationCache } from '../../src/actors/actor/calibration-cache.ts';
import { createConversationLog } from '../../src/actors/log/conversation-log.ts';
import { createEngine, type Engine } from '../../src/actors/engine/engine.ts';
import { createTaskFolds } from '../../src/actors/log/tasks.ts';
import { createTaskTrees } from '../../src/actors/actor/task-trees.ts';
import { createRegistry } from '../../src/actors/actor/registry.ts';
import {
  parseTroupe,
  type TroupeDefinition,
  type TroupeInput,
} from '../../src/library/config/agents-file.ts';
import { buildAgentRegistry } from '../../src/library/config/build-agent-registry.ts';
import { openInstructionFiles } from '../../src/library/config/instruction-files.ts';
import type { Clock } from '../../src/base/clock.ts';
import type { PolicyConstants } from '../../src/library/config/context-settings.ts';
import { fenceKey } from '../../src/context/index.ts';
import {
  type ActorRecord,
  type AgentId,
  type Author,
  type BusyPolicy,
  type ConversationId,
  DEFAULT_TENANT,
  type Event,
} from '../../src/events/index.ts';
import { noIntegrations } from './no-integrations.ts';
import { createTenants, openCredentials } from '../../src/library/facade/credentials.ts';
import { memoryKeyValue } from '../../src/base/key-value.ts';
import { createLiveFeed } from '../../src/library/facade/live.ts';
import { createProfileRepository } from '../../src/library/facade/profile-repository.ts';
import { createSigningKey } from '../../src/library/access/index.ts';
import { createTroupeFacade } from '../../src/library/facade/tenant-facade.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { NO_METRICS } from '../../src/events/metrics.ts';
import { createInProcessAdmission } from '../../src/queue/in-process-admission.ts';
import { createBroadcastHub } from '../../src/queue/in-process-broadcast.ts';
import { createInProcessRouter } from '../../src/queue/in-process.ts';
import type { Router } from '../../src/queue/router.ts';
import { createStore } from '../../src/store/create-store.ts';
import type { StoreDriver } from '../../src/store/driver.ts';
import type { Store } from '../../src/store/store.ts';
import { checkLog, type CheckOptions, type Violation } from '../../packages/testing/src/check-log.ts';
import { createFakeClock, type FakeClock } from '../../packages/testing/src/fake-clock.ts';
import type { Tool } from '../../src/tools/tool.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { openDriver } from './mode.ts';

/** One engine with its facade, composed as in `runtime.ts`, over injected parts. */
export interface Stage {
  troupe: Troupe;
  engine: Engine;
  deps: TurnDeps;
  store: Store;
  driver: StoreDriver;
  clock: FakeClock;
  warnings: { error: unknown; where: string }[];
  /** Posts a message of a person. */
  say(conversation: string, content: string, to: readonly string[], id?: string): Promise<void>;
  events(conversation: string): Promise<Event[]>;
  actor(conversation: string, agent: string): Promise<ActorRecord>;
  /** Advances the clock until no wake is waiting or running. */
  quiet(): Promise<void>;
  check(conversation: string, options?: CheckOptions): Promise<Violation[]>;
}

export interface StageAgent {
  id: string;
  model: Provider;
  tools?: string[];
  join?: 'full' | 'summary' | 'fresh';
  whileBusy?: BusyPolicy;
  workspace?: string;
  instructions?: InstructionsFunction;
  /** Context window and maximum output, in tokens; by default large enough for everything. */
  contextWindow?: number;
  maxOutputTokens?: number;
}

export interface StageOptions {
  agents: StageAgent[];
  tools?: Tool[];
  /** Store of the engine; by default a new one in memory. */
  driver?: StoreDriver;
  clock?: FakeClock;
  limits?: Partial<EngineLimits>;
  router?: (router: Router) => Router;
  random?: () => number;
  concurrency?: number;
  /** Agent that answers messages without an addressee. */
  fallback?: string;
  context?: TroupeInput['context'];
  policy?: PolicyConstants;
  pending?: EngineDeps['pending'];
  schedules?: readonly Schedule[];
  lifecycle?: EngineDeps['lifecycle'];
  checkpoints?: { version?: string; least?: number };
  workflows?: TroupeInput['workflows'];
}

export const ANA: Author = { kind: 'user', id: 'u1', name: 'Ana' };

const TENANT = DEFAULT_TENANT;
/** Counts words, which is cheap; these tests do not depend on the numbers. */
const countTokens = (text: string) => Math.ceil(text.length / 4);
let engines = 0;

export async function openStage(options: StageOptions): Promise<Stage> {
  const { clock = createFakeClock(), limits = {}, random = Math.random, concurrency = 64 } = options;
  const driver = options.driver ?? (await openDriver());
  const definition = definitionOf(options);
  const warnings: Stage['warnings'] = [];
  const onWarning = (error: unknown, where: string) => void warnings.push({ error, where });
  const store = createStore(driver);
  const plain = createInProcessRouter({ clock });
  const router = options.router?.(plain) ?? plain;
  const broadcast = createBroadcastHub().join(onWarning);
  const secretOf: EngineDeps['secretOf'] = ({ tenant, conversation }) =>
    fenceKey('test', `${tenant}/${conversation}`);
  const features = openFeatures({
    store,
    clock,
    random,
    metrics: NO_METRICS,
    onWarning,
    version: options.checkpoints?.version ?? '',
    foldEvery: options.checkpoints?.least,
    ...(options.schedules && { schedules: options.schedules }),
  });
  const stopping = new AbortController();
  const live = createLiveFeed(broadcast, onWarning);
  const log = createConversationLog({
    store,
    router,
    broadcast,
    clock,
    countTokens,
    metrics: NO_METRICS,
    onWarning,
  });
  const deps: TurnDeps = {
    store,
    router,
    broadcast,
    admission: createInProcessAdmission({ caps: {}, clock }),
    metrics: NO_METRICS,
    log,
    agents: await companyOf(options, definition, onWarning),
    registry: createRegistry({ secretOf }),
    clock,
    random,
    process: `engine-${(engines += 1)}`,
    secretOf,
    countTokens,
    features,
    checkpoints: features.checkpoints?.folds,
    taskFolds: createTaskFolds(log.stored, features.checkpoints?.folds),
    models: createCalibrationCache({ store, clock, onWarning }),
    trees: createTaskTrees({ store, clock, random, limits: { ...DEFAULT_LIMITS, ...limits } }),
    limits: { ...DEFAULT_LIMITS, soleOwner: true, ...limits },
    ...(options.pending && { pending: options.pending }),
    ...(options.lifecycle && { lifecycle: options.lifecycle }),
    forTools: createForTools(),
    stopping: stopping.signal,
    onLive: live.tell,
    onWarning,
  };
  const engine = createEngine(deps, stopping);
  const fallback = (options.fallback ?? null) as AgentId | null;
  const troupe = createTroupeFacade({
    commands: featureCommands(),
    integrations: noIntegrations(),
    tenants: createTenants(memoryKeyValue()),
    profilesOf: () => createProfileRepository(memoryKeyValue()),
    credentials: openCredentials(memoryKeyValue(), { clock }),
    cardKey: createSigningKey('secret', 'agent card'),
    deps,
    engine,
    live: live.feed,
    fallback,
    hide: null,
    sticks: false,
    workflows: definition.workflows ?? [],
    release: async () => undefined,
  });
  engine.start({ concurrency });

  const events = (conversation: string) => allEvents(store, conversation);
  return {
    troupe,
    engine,
    deps,
    store,
    driver,
    clock,
    warnings,
    events,
    async say(conversation, content, to, id) {
      await troupe.send(conversation, { author: ANA, content, to, ...(id && { id: id as Event['id'] }) });
    },
    async actor(conversation, agent) {
      const address = { ...logOf(conversation), agent: agent as AgentId };
      const record = await store.readActor(address);
      if (!record) throw new Error(`no actor ${agent} in ${conversation}`);
      return record;
    },
    quiet: () => quiet(router, clock),
    check: async (conversation, check) => checkStore(store, conversation, check),
  };
}

async function companyOf(
  { agents, policy }: StageOptions,
  definition: TroupeDefinition,
  onWarning: EngineDeps['onWarning'],
): Promise<EngineDeps['agents']> {
  const models = new Map(agents.map(({ id, model }) => [id, model]));
  const files = await openInstructionFiles(definition, { onWarning, isTolerant: false });
  return buildAgentRegistry(definition, ({ id }) => models.get(id) as Provider, countTokens, {
    files,
    policy,
  });
}

function definitionOf({ agents, tools = [], context, workflows }: StageOptions): TroupeDefinition {
  const script = { rules: [{}] };
  return parseTroupe({
    agents: agents.map(
      ({ id, tools: granted = [], join = 'full', whileBusy, workspace, instructions, ...agent }) => ({
        id,
        provider: 'scripted',
        script,
        tools: granted,
        join,
        ...(whileBusy && { whileBusy }),
        ...(workspace !== undefined && { workspace }),
        ...(instructions && { instructions }),
        ...sizesOf(agent),
      }),
    ),
    tools,
    context,
    workflows,
  });
}

/** Missing values get their defaults. */
function sizesOf({ contextWindow, maxOutputTokens }: Partial<StageAgent>): Partial<StageAgent> {
  return {
    ...(contextWindow !== undefined && { contextWindow }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
  };
}

export function logOf(conversation: string) {
  return { tenant: TENANT, conversation: conversation as ConversationId };
}

export async function allEvents(store: Store, conversation: string): Promise<Event[]> {
  return store.read(logOf(conversation), { after: 0 });
}

export async function checkStore(
  store: Store,
  conversation: string,
  options?: CheckOptions,
): Promise<Violation[]> {
  const actors = await store.listActors(logOf(conversation));
  const readable = actors.filter((actor) => !('address' in actor)) as ActorRecord[];
  return checkLog(await allEvents(store, conversation), readable, options);
}

/** Idle rounds of the event loop after which the engine counts as quiet. */
const QUIET_ROUNDS = 4;
const STEP_MS = 20;
const PATIENCE = 20_000;

async function quiet(router: Router, clock: FakeClock): Promise<void> {
  let still = 0;
  const until = performance.now() + LONGEST_WAIT_MS;
  for (let round = 0; still < QUIET_ROUNDS; round++) {
    // A turn may wait for a file, which takes as long as the machine is busy.
    if (round > PATIENCE && performance.now() > until)
      throw new Error(`still busy: ${JSON.stringify(await router.depth())}`);
    const { waiting, active, delayed } = await router.depth();
    still = waiting + active + delayed === 0 ? still + 1 : 0;
    await clock.advance(STEP_MS);
  }
}

/** Turns the event loop, so that store operations and handlers progress while the clock stands still. */
export async function turns(count = 1): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** A generous time: files and servers may be slow, and only a fault takes as long. */
const LONGEST_WAIT_MS = 60_000;

export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const start = performance.now();
  while (performance.now() - start < LONGEST_WAIT_MS) {
    if (await holds()) return;
    await turns();
  }
  throw new Error(`this never happened: ${what}`);
}

export type { Clock };
