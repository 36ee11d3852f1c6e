import { createSigningKey, type SigningKey } from '../access/index.ts';
import { randomBytes } from 'node:crypto';
import type { AgentRegistry } from '../../actors/actor/agent-runtime.ts';
import {
  createForTools,
  DEFAULT_LIMITS,
  type EngineDeps,
  type EngineLimits,
  MAX_TREE_TOKENS,
  createPendingCount,
  type PendingCount,
} from '../../actors/actor/engine-deps.ts';
import { createCalibrationCache } from '../../actors/actor/calibration-cache.ts';
import { createEngine, type Engine } from '../../actors/engine/engine.ts';
import { createRegistry } from '../../actors/actor/registry.ts';
import { closeFeatures, openFeatures } from '../../actors/features/features.ts';
import type { CheckpointsFeature, Features, TurnDeps, FeatureParts } from '../../actors/attempt/turn-run.ts';
import { createColdViews } from '../../actors/log/read-log.ts';
import { createConversationLog } from '../../actors/log/conversation-log.ts';
import { createRedaction } from '../../events/redaction.ts';
import { createTaskFolds } from '../../actors/log/tasks.ts';
import { createTaskTrees } from '../../actors/actor/task-trees.ts';
import type { Clock } from '../../base/clock.ts';
import type { TroupeDefinition } from '../config/agents-file.ts';
import { schedulesOf } from '../config/coordination-settings.ts';
import { formerIds } from '../config/former-ids.ts';
import { countTokens } from '../../context/budget/tokens.ts';
import { fenceKey } from '../../context/index.ts';
import { type ActorAddress, DEFAULT_TENANT, type TenantId } from '../../events/index.ts';
import { createTenants, type Tenants } from '../facade/credentials.ts';
import { createLiveFeed, type LiveFeed } from '../facade/live.ts';
import { createProfileRepositories } from '../facade/profile-repository.ts';
import type { ProfileRepository } from '../troupe.ts';
import type { KeyValue } from '../../base/key-value.ts';
import type { Metrics } from '../../events/metrics.ts';
import type { Embedder } from '../../providers/embedder.ts';
import type { ResourceStack } from '../../base/resource-stack.ts';
import { withLentPlaces } from '../../queue/lent-places.ts';
import { keyValueOf, type Services } from './services.ts';
import { readFileSync } from 'node:fs';
import type { PolicyConstants } from '../config/context-settings.ts';

interface EngineOptions {
  definition: TroupeDefinition;
  services: Services;
  agents: AgentRegistry;
  embedder: Embedder | null;
  operators: Pick<EngineDeps, 'logger' | 'tracer' | 'onWarning'>;
  clock: Clock;
  metrics: Metrics;
  given: {
    /** What the application gives its tools. */
    app?: unknown;
    /** Secret of a new store. Default: a random one. */
    newSecret?: string | undefined;
    constants?: Constants | undefined;
  };
  /** Id of this process among lease holders. */
  process: string;
  /** Takes what must be closed before the services. */
  opened: ResourceStack;
}

interface OpenedEngine {
  deps: TurnDeps;
  engine: Engine;
  /** What happens in running turns. */
  live: LiveFeed;
  pending: PendingCount;
  tenants: Tenants;
  rootKeyValue: KeyValue;
  profilesOf: (tenant: TenantId) => ProfileRepository;
  /** Random secret of the store. */
  secret: string;
  cardKey: SigningKey;
}

/** How long turns may use a profile that another process may have changed, ms. */
const PROFILE_KEEP_MS = 5_000;

/** The engine with everything it depends on. It takes no turns before `engine.start`. */
export async function openEngine(options: EngineOptions): Promise<OpenedEngine> {
  const { definition, services, agents, operators, clock, metrics, opened, given } = options;
  const { store, broadcast, admission } = services;
  const router = withLentPlaces(services.router, clock);
  const { onWarning } = operators;
  const random = Math.random;
  const secret = await store.meta('secret', given.newSecret ?? randomBytes(24).toString('hex'));
  const secretOf: EngineDeps['secretOf'] = ({ tenant, conversation }) =>
    fenceKey(secret, `${tenant}/${conversation}`);
  const limits = limitsOf(definition, services, given.constants?.limits);
  const models = createCalibrationCache({ store, clock, onWarning });
  opened.defer(() => models.flush());
  const { pendingPerTenant } = definition.limits;
  const pending = createPendingCount({ router, clock, limit: pendingPerTenant });
  const features = featuresOf(options, random);
  opened.defer(() => closeFeatures(features));
  const redaction = definition.redact && createRedaction(definition.redact, onWarning);
  const live = createLiveFeed(broadcast, onWarning, () => clock.now());
  const rootKeyValue = keyValueOf(store, DEFAULT_TENANT);
  const tenants = createTenants(rootKeyValue);
  const { of: profilesOf, known } = profilesIn({ store, redaction, clock, limits });
  const stopping = new AbortController();
  const log = createConversationLog({
    store,
    router,
    broadcast,
    clock,
    countTokens,
    metrics,
    redaction,
    onWarning,
  });
  const deps: TurnDeps = {
    ...operators,
    store,
    router,
    broadcast,
    admission,
    log,
    registry: createRegistry({ secretOf }),
    agents,
    models,
    pending,
    lendPlace: () => router.lend(),
    features,
    checkpoints: features.checkpoints?.folds,
    trees: createTaskTrees({ store, clock, random, limits }),
    taskFolds: createTaskFolds(log.stored, features.checkpoints?.folds),
    coldViews: createColdViews(log, secretOf, clock, storedFolds(features.checkpoints, secretOf)),
    redaction,
    metrics,
    limits,
    clock,
    random,
    process: options.process,
    secretOf,
    countTokens,
    lifecycle: definition.lifecycle ?? {},
    retention: definition.retention,
    tenants: () => tenants.list(),
    profileOf: known,
    trust: definition.trust?.people ?? null,
    app: given.app,
    forTools: createForTools(),
    stopping: stopping.signal,
    onLive: live.tell,
  };
  const engine = createEngine(deps, stopping);
  const cardKey = createSigningKey(secret, 'agent card');
  return { deps, engine, live: live.feed, pending, tenants, rootKeyValue, profilesOf, secret, cardKey };
}

function profilesIn({
  store,
  redaction,
  clock,
  limits,
}: Pick<EngineDeps, 'store' | 'redaction' | 'clock' | 'limits'>) {
  return createProfileRepositories({
    entriesOf: (tenant) => keyValueOf(store, tenant),
    redact: redaction && ((text, author) => redaction.text(text, { kind: 'message', author })),
    clock,
    keepMs: limits.soleOwner ? Infinity : PROFILE_KEEP_MS,
  });
}

function featuresOf(
  { definition, services, embedder, operators, clock, metrics, given }: EngineOptions,
  random: () => number,
): Features {
  const { budgets, schedules = [] } = definition;
  const features = openFeatures({
    store: services.store,
    clock,
    random,
    metrics,
    onWarning: operators.onWarning,
    caps: { ...budgets, tree: { tokens: MAX_TREE_TOKENS } },
    version: foldsOf(definition),
    embedder,
    ...given.constants?.memory,
    schedules: schedulesOf(schedules),
  });
  if (definition.context.compaction !== false) return features;
  const { compaction: _off, ...others } = features;
  return others;
}

/** Reads what is stored of an actor's folds. */
function storedFolds(checkpoints: CheckpointsFeature | undefined, secretOf: EngineDeps['secretOf']) {
  return async (address: ActorAddress) =>
    (await checkpoints?.restore(address, { secret: secretOf(address) }))?.folded ?? null;
}

/**
 * Number of leases between two sweeps. Work of a dead process comes back through the queue before its lease ends. A
 * sweep reads everything that was addressed lately, so it runs less often.
 */
const LEASES_PER_SWEEP = 2;

/** The defaults, overridden by the mode, then by the definition, then by a test. */
function limitsOf(
  { limits }: TroupeDefinition,
  services: Pick<Services, 'limits'>,
  constants: Constants['limits'],
): EngineLimits {
  const { turnsPerTenant: _turns, pendingPerTenant: _pending, providers: _providers, ...own } = limits;
  const given = Object.entries(own).filter(([, value]) => value !== undefined);
  const all = { ...DEFAULT_LIMITS, ...services.limits, ...Object.fromEntries(given) };
  return { ...all, sweepMs: all.leaseMs * LEASES_PER_SWEEP, ...constants };
}

/** Ids of agents on which stored folds depend, so that folds from before a renaming are made again. */
function foldsOf({ agents }: TroupeDefinition): string {
  const former = formerIds(agents);
  return former ? ` ${JSON.stringify([...former])}` : '';
}

/** The version in the package file of this code, which is two folders up in `src` and in `dist`. */
export function releaseOf(): string {
  try {
    const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
    const { version } = JSON.parse(text) as { version?: unknown };
    return String(version);
  } catch {
    // A bundle without its package file.
    return 'unknown';
  }
}

/** Constants that no definition sets, for tests that cannot wait as long or write as much. */
export interface Constants {
  /** Limits of the engine, which override the definition. */
  limits?: Partial<EngineLimits> | undefined;
  /** When and how far prompts are compacted. */
  policy?: PolicyConstants | undefined;
  /** How long turns wait for the vector of their query. */
  memory?: Pick<FeatureParts, 'deadlineMs' | 'firstDeadlineMs'> | undefined;
}
