import type { Features, TurnDeps } from '../src/actors/attempt/turn-run.ts';
import { openFeatures } from '../src/actors/features/features.ts';
import { createCalibrationCache } from '../src/actors/actor/calibration-cache.ts';
import { createConversationLog } from '../src/actors/log/conversation-log.ts';
import { createEngine, type Engine } from '../src/actors/engine/engine.ts';
import { DEFAULT_LIMITS, type EngineDeps } from '../src/actors/actor/engine-deps.ts';
import { createTaskFolds } from '../src/actors/log/tasks.ts';
import { createTaskTrees } from '../src/actors/actor/task-trees.ts';
import { createRegistry } from '../src/actors/actor/registry.ts';
import type { Clock } from '../src/base/clock.ts';
import { type ErrorCode, TroupeError } from '../src/base/errors.ts';
import { NO_METRICS } from '../src/events/metrics.ts';
import type { Notice } from '../src/queue/broadcast.ts';
import { createOpenAdmission } from '../src/queue/in-process-admission.ts';
import type { Router } from '../src/queue/router.ts';
import { createStore } from '../src/store/create-store.ts';
import { createDocumentDriver } from '../src/store/documents/document-driver.ts';
import { createMemoryDocuments } from './memory-documents.ts';
import type { Store } from '../src/store/store.ts';
import { newSessionMemory } from '../packages/testing/src/fake-sessions.ts';
import { companyOf, countTokens } from './company.ts';
import { randomOf } from './random.ts';
import type { Owner } from './scheduler.ts';
import type { World } from './world.ts';

/** One process of the company: the production engine over ports whose awaits all belong to the scheduler. */
export interface AgentRuntime {
  readonly owner: Owner;
  readonly slot: number;
  readonly deps: TurnDeps;
  readonly engine: Engine;
  /** Resolves when the process dies; clients notice it. */
  readonly died: Promise<'died'>;
  /** Error of its clock, ms. */
  skew: number;
  act<T>(label: string, work: () => T, fails?: ErrorCode | null): Promise<T>;
  warn(error: unknown, where: string): void;
  hear(notice: Notice): void;
  die(): void;
}

const EPOCH = Date.UTC(2026, 0, 1);
export const SECRET = 'a secret of thirty-two characters';
/** Few, because the conversations are short. */
const LEAST_EVENTS = 4;
/** Share of answers that arrive later than the operation took effect. */
const LATE_ANSWERS = 1 / 8;

export function bootMember(world: World, slot: number, incarnation: number, skew: number): AgentRuntime {
  const { scheduler } = world;
  const name = `p${slot}.${incarnation}`;
  const owner: Owner = { name, state: 'alive', held: [] };
  const random = randomOf(world.seed, name);
  const { promise: died, resolve: die } = Promise.withResolvers<'died'>();
  const listeners = new Set<(notice: Notice) => void>();

  /** One operation on an external service, with all of its possible faults. */
  function act<T>(label: string, work: () => T, fails: ErrorCode | null = null): Promise<T> {
    return new Promise((resolve, reject) => {
      const run = () => {
        const fault = world.faultAt(member, label, fails !== null);
        if (fault === 'crash before') return world.kill(member);
        if (fault === 'failed before' && fails) return reject(unavailable(fails, label));
        let value: T;
        try {
          value = work();
        } catch (error) {
          return reject(error as Error);
        }
        if (fault === 'crash after') return world.kill(member);
        if (fault === 'ambiguous ack' && fails) return reject(unavailable(fails, label));
        if (owner.state === 'alive' && random() >= LATE_ANSWERS) return resolve(value);
        scheduler.add(owner, 'answer', () => resolve(value));
      };
      scheduler.add(owner, label, run, fails ? () => void work() : undefined);
    });
  }

  function sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const sleeper = scheduler.sleep(owner, 'timer', ms, wake);
      signal?.addEventListener('abort', wake, { once: true });
      function wake() {
        scheduler.cancel(sleeper);
        signal?.removeEventListener('abort', wake);
        resolve();
      }
    });
  }

  const clock: Clock = {
    now: () => Math.floor(EPOCH + scheduler.now() + member.skew),
    monotonic: () => scheduler.now(),
    sleep,
  };
  const warn = (error: unknown, where: string) => world.warned(name, error, where);
  const documents = createMemoryDocuments({
    data: world.data,
    gate: (op, work) => act(op, work, 'store_unavailable'),
  });
  const store: Store = {
    ...createStore(createDocumentDriver(documents, { random, sleep: (ms: number) => sleep(ms) })),
    // No process gets to sweep, so lost work stays lost.
    ...(world.mode === 'light' && { claim: () => Promise.resolve(false) }),
  };
  const router: Router = {
    wake: (address, { delayMs = 0 } = {}) =>
      act('wake', () => world.queue.add(address, delayMs), 'queue_unavailable'),
    start: (handler, { concurrency }) => world.queue.serve(member, handler, concurrency),
    depth: () => Promise.resolve({ waiting: 0, active: 0, delayed: 0 }),
    backlog: () => Promise.resolve(0),
    waiting: () => Promise.resolve([]),
    check: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
  const broadcast: EngineDeps['broadcast'] = {
    // Only requests to stop are broadcast here, because there are no readers.
    publish: (notice) =>
      void ((notice.type === 'stop' || notice.type === 'cancelled') && world.announce(member, notice)),
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close: () => Promise.resolve(),
  };
  const features = openFeatures({
    store,
    clock,
    random,
    metrics: NO_METRICS,
    onWarning: warn,
    version: '',
    foldEvery: LEAST_EVENTS,
  });
  const stopping = new AbortController();
  const secretOf = () => SECRET;
  const stage = {
    random,
    ledger: world.ledger,
    act,
    sleep,
    isCalm: world.isCalm,
    leaseMs: world.limits.leaseMs,
    deadlines: world.mode === 'full',
    memory: world.memories[slot] ?? newSessionMemory(),
    machine: `machine ${slot}`,
    rewinds: world.seed % 2 === 0,
    isAlive: () => owner.state !== 'dead',
    asked: (turn: string) => void world.asked.push({ process: name, turn }),
  };
  const deps: TurnDeps = {
    store,
    router,
    broadcast,
    admission: createOpenAdmission(),
    metrics: NO_METRICS,
    log: createConversationLog({
      store,
      router,
      broadcast,
      metrics: NO_METRICS,
      clock,
      countTokens,
      onWarning: warn,
    }),
    agents: companyOf(stage),
    registry: createRegistry({ secretOf }),
    taskFolds: createTaskFolds(store, features.checkpoints?.folds),
    clock,
    random,
    process: name,
    secretOf,
    countTokens,
    models: createCalibrationCache({ store, clock, onWarning: warn }),
    features: { ...features, checkpoints: countRestored(world, features.checkpoints) },
    checkpoints: features.checkpoints?.folds,
    trees: createTaskTrees({ store, clock, random, limits: { ...DEFAULT_LIMITS, ...world.limits } }),
    limits: { ...DEFAULT_LIMITS, soleOwner: false, ...world.limits },
    stopping: stopping.signal,
    onWarning: warn,
  };
  const engine = createEngine(deps, stopping);
  const member: AgentRuntime = {
    owner,
    slot,
    deps,
    engine,
    died,
    skew,
    act,
    warn,
    hear: (notice) => listeners.forEach((listener) => listener(notice)),
    die: () => die('died'),
  };
  engine.start({ concurrency: 8 });
  return member;
}

function unavailable(code: ErrorCode, label: string): TroupeError {
  return new TroupeError(code, `simulated: ${label}`);
}

function countRestored(world: World, feature: Features['checkpoints']): Features['checkpoints'] {
  return (
    feature && {
      ...feature,
      async restore(address, options) {
        const found = await feature.restore(address, options);
        if (found) world.figures.restored += 1;
        if (found) world.restored.add(`${address.conversation}:${address.agent}`);
        return found;
      },
    }
  );
}
