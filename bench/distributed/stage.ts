import { createSigningKey } from '../../src/library/access/index.ts';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import type { TurnDeps } from '../../src/actors/attempt/turn-run.ts';
import { featureCommands, openFeatures } from '../../src/actors/features/features.ts';
import { createCalibrationCache } from '../../src/actors/actor/calibration-cache.ts';
import { createConversationLog } from '../../src/actors/log/conversation-log.ts';
import { createEngine } from '../../src/actors/engine/engine.ts';
import { DEFAULT_LIMITS, type EngineDeps, type EngineLimits } from '../../src/actors/actor/engine-deps.ts';
import { createRegistry } from '../../src/actors/actor/registry.ts';
import { createTaskFolds } from '../../src/actors/log/tasks.ts';
import { createTaskTrees } from '../../src/actors/actor/task-trees.ts';
import { parseTroupe, type TroupeInput } from '../../src/library/config/agents-file.ts';
import { buildAgentRegistry } from '../../src/library/config/build-agent-registry.ts';
import { systemClock as clock } from '../../src/base/clock.ts';
import { countTokens } from '../../src/context/budget/tokens.ts';
import { fenceKey } from '../../src/context/index.ts';
import type { ActorAddress } from '../../src/events/index.ts';
import { noIntegrations } from '../../test/support/no-integrations.ts';
import { createTenants, openCredentials } from '../../src/library/facade/credentials.ts';
import { createProfileRepository } from '../../src/library/facade/profile-repository.ts';
import { memoryKeyValue } from '../../src/base/key-value.ts';
import { createLiveFeed } from '../../src/library/facade/live.ts';
import { createTroupeFacade } from '../../src/library/facade/tenant-facade.ts';
import { NO_METRICS } from '../../src/events/metrics.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { createProvider } from '../../src/library/runtime/registry.ts';
import { createBullmqRouter } from '../../src/queue/bullmq/bullmq-router.ts';
import { connectRedis, endConnection, type RedisProfile } from '../../src/queue/redis/connect-redis.ts';
import { createRedisAdmission } from '../../src/queue/redis/redis-admission.ts';
import { createRedisBroadcast } from '../../src/queue/redis/redis-broadcast.ts';
import type { Router } from '../../src/queue/router.ts';
import { createStore } from '../../src/store/create-store.ts';
import { createDocumentDriver } from '../../src/store/documents/document-driver.ts';
import type { Documents } from '../../src/store/documents/documents.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { stop } from '../support.ts';

/**
 * The engine of the distributed mode, composed as in `runtime.ts` and `runtime/open-services.ts`, over any documents.
 */
export interface Stage {
  troupe: Troupe;
  /** BullMQ's latest events (it keeps about a thousand), counted by name, e.g. `added`. */
  queueEvents(): Promise<Record<string, number>>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface StageOptions {
  definition: TroupeInput;
  documents: Documents;
  limits?: Partial<EngineLimits>;
  /** An actor was handed to this process. */
  onTaken?: (address: ActorAddress) => void;
  onModelCall?: (conversation: string) => void;
}

export const REDIS_URL = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379';
/** Concurrent turns, and concurrent jobs of the bare queue. */
export const CONCURRENCY = 64;
/** For runs in which the search for lost work would count too. */
export const NO_SWEEPS: Partial<EngineLimits> = { sweepMs: 3_600_000 };

export function newPrefix(): string {
  return `bench-${randomUUID()}`;
}

export async function openStage(options: StageOptions): Promise<Stage> {
  const { documents, limits = {} } = options;
  const prefix = newPrefix();
  const definition = parseTroupe(options.definition);
  const connect = (profile: RedisProfile) => connectRedis(REDIS_URL, { profile, onWarning: stop });
  const producer = connect('producer');
  const connectBlocking = () => connect('blocking');
  const sleep = (ms: number) => clock.sleep(ms);
  const store = createStore(createDocumentDriver(documents, { random: Math.random, sleep }));
  const connections = { producer, connectBlocking };
  const router = observed(createBullmqRouter({ connections, prefix, clock, onWarning: stop }), options);
  const broadcast = createRedisBroadcast({
    publisher: producer,
    connectSubscriber: connectBlocking,
    prefix,
    process: prefix,
    onWarning: stop,
  });
  const secretOf: EngineDeps['secretOf'] = ({ tenant, conversation }) =>
    fenceKey('bench', `${tenant}/${conversation}`);
  const stopping = new AbortController();
  const shared = { store, router, broadcast, clock, countTokens, metrics: NO_METRICS, onWarning: stop };
  const live = createLiveFeed(broadcast, stop);
  const deps: TurnDeps = {
    ...shared,
    models: createCalibrationCache({ store, clock, onWarning: stop }),
    features: openFeatures({
      store,
      clock,
      random: Math.random,
      metrics: NO_METRICS,
      onWarning: stop,
      version: '',
    }),
    taskFolds: createTaskFolds(store),
    trees: createTaskTrees({
      store,
      clock,
      random: Math.random,
      limits: { ...DEFAULT_LIMITS, ...limits },
    }),
    admission: createRedisAdmission({ redis: producer, prefix, caps: {}, onWarning: stop }),
    log: createConversationLog(shared),
    agents: await companyOf(definition, options),
    registry: createRegistry({ secretOf }),
    random: Math.random,
    process: prefix,
    secretOf,
    limits: { ...DEFAULT_LIMITS, ...limits },
    stopping: stopping.signal,
    onLive: live.tell,
  };
  const engine = createEngine(deps, stopping);
  const fallback = (definition.defaults.respondWhenUnaddressed ?? null) as ActorAddress['agent'] | null;
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
    async release() {
      await broadcast.close();
      await store.close();
      endConnection(producer);
    },
  });
  if (producer.status !== 'ready') await once(producer, 'ready');
  await broadcast.listening();
  engine.start({ concurrency: CONCURRENCY });
  return {
    troupe,
    async queueEvents() {
      const counts: Record<string, number> = {};
      for (const [, fields] of await producer.xrange(`{${prefix}}:wake:events`, '-', '+')) {
        const name = fields[fields.indexOf('event') + 1] ?? '';
        counts[name] = (counts[name] ?? 0) + 1;
      }
      return counts;
    },
    async [Symbol.asyncDispose]() {
      await troupe.close();
      await dropKeys(prefix);
    },
  };
}

function observed(router: Router, { onTaken }: StageOptions): Router {
  if (!onTaken) return router;
  return {
    ...router,
    start(handler, options) {
      router.start((address, begun) => {
        onTaken(address);
        return handler(address, begun);
      }, options);
    },
  };
}

async function companyOf(definition: ReturnType<typeof parseTroupe>, { onModelCall }: StageOptions) {
  const made = new Map<string, Provider>();
  const context = { env: {}, clock, readScript: () => ({}), home: '' };
  for (const agent of definition.agents) made.set(agent.id, await createProvider(agent, context));
  return buildAgentRegistry(
    definition,
    (agent) => {
      const provider = made.get(agent.id)!;
      if (!onModelCall) return provider;
      return {
        ...provider,
        stream(request, options) {
          onModelCall(request.trace.conversation);
          return provider.stream(request, options);
        },
      };
    },
    countTokens,
  );
}

/** Cleans up: the server may not be ours. */
export async function dropKeys(prefix: string): Promise<void> {
  const redis = new Redis(REDIS_URL);
  for (const pattern of [`{${prefix}}:*`, `${prefix}:*`]) {
    for await (const keys of redis.scanStream({ match: pattern, count: 1_000 })) {
      if ((keys as string[]).length > 0) await redis.unlink(keys as string[]);
    }
  }
  redis.disconnect();
}
