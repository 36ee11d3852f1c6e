import { TroupeError } from '../../base/errors.ts';
import {
  type ActorAddress,
  addressKey,
  parseTurnId,
  presentAddress,
  type TenantId,
  type TurnId,
} from '../../events/index.ts';
import type { Availability } from '../../machines/availability-fold.ts';
import { pathOf } from '../../machines/agent-lifecycle.ts';
import { addressOfTurn } from '../actor/agent-runtime.ts';
import { changeAvailability, publishAvailability } from '../actor/at-rest.ts';
import { activate, markFailed } from './activate.ts';
import { type EngineDeps, KEPT_MS } from '../actor/engine-deps.ts';
import type { TurnDeps } from '../attempt/turn-run.ts';
import { stopBelow } from '../tasks/task-ends.ts';
import { createEndQuiet } from '../conversations/delete-conversation.ts';
import { fixedTexts, forgetStoredTexts } from '../turn/baseline.ts';
import { createRetention } from '../erasure/retention.ts';
import { createUndefinedAgents, type UndefinedAgents } from './undefined-agents.ts';
import { createParticipantsCache, type ParticipantsCache } from '../conversations/messages.ts';

/** The turn engine of one process: serves wakes, sweeps, and executes commands on actors. */
export interface Engine {
  start(options: { concurrency: number }): void;
  /** Aborts a running turn. Once this resolves, no reply of that turn follows. Returns false if it is not running. */
  abort(tenant: TenantId, turn: TurnId): Promise<boolean>;
  pause(address: ActorAddress): Promise<void>;
  /** Resumes an actor. `as`: the event for its machine. */
  resume(address: ActorAddress, as?: 'RESUME' | 'RETRY' | 'REINSTATE'): Promise<void>;
  /**
   * Finishes the running steps, releases the leases, and resolves when nothing runs any more. Work that takes longer than
   * `STOP_GRACE_MS` is interrupted, and its turns stay pinned for the next process.
   */
  stop(): Promise<void>;
}

/** Pause before an actor is tried again after the store was unavailable, ms. */
const STORE_PAUSE_MS = 1_000;
/** Pause before an actor that is still active in this process is tried again, ms. */
const AT_WORK_PAUSE_MS = 1_000;
/** Pause that lets a process of a newer version take an actor whose record this one cannot read, ms. */
const NEWER_PAUSE_MS = 5_000;
const STOP_GRACE_MS = 7_000;

export function createEngine(deps: TurnDeps, stopping: AbortController): Engine {
  let sweeper: Sweeper | null = null;
  const stops = createStops(deps);
  const undefinedAgents = createUndefinedAgents(deps);
  const serve = createServe(deps, undefinedAgents);
  return {
    start({ concurrency }) {
      deps.router.start(serve, {
        concurrency,
        onError: (error, address) => deps.onWarning(error, `wake of @${address.agent}`),
        onLost: () => sweeper?.lookAtAll(),
      });
      sweeper = startSweeper(deps, undefinedAgents, stopping.signal);
    },
    async abort(tenant, turn) {
      const parts = parseTurnId(turn);
      if (!parts) return false;
      const address = addressOfTurn(deps.agents, tenant, parts);
      if (!(await stops.stopTurn(address, turn))) return false;
      // If nobody holds the lease, the next holder must find the request. The sweeper makes up for a lost wake.
      await deps.router.wake(address).catch((error: unknown) => deps.onWarning(error, 'wake'));
      return true;
    },
    async pause(address) {
      const { kind, state } = await changeAvailability(deps, address, { type: 'PAUSE' });
      if (kind === 'refused' && state !== 'paused') throw notAccepted(address, 'pause', state);
      if (kind === 'changed') publishAvailability(deps, address, 'PAUSE', state);
    },
    async resume(address, as = 'RESUME') {
      const { kind, state } = await changeAvailability(deps, address, { type: as });
      if (kind === 'refused' && state !== 'available') throw notAccepted(address, 'resume', state);
      const live = deps.registry.find(address);
      publishAvailability(deps, address, as, live ? pathOf(live.state.value) : 'idle');
      // The machine of an active agent is kept, because its turn uses it.
      if (!deps.registry.find(address)?.lease) deps.registry.drop(address);
      await deps.router.wake(address).catch((error: unknown) => deps.onWarning(error, 'wake'));
    },
    async stop() {
      const reason = new TroupeError('shutting_down', 'the process is ending');
      stopping.abort(reason);
      stops.close();
      deps.log.close();
      const quiet = new AbortController();
      void deps.clock.sleep(STOP_GRACE_MS, quiet.signal).then(() => {
        if (quiet.signal.aborted) return;
        for (const { lease } of deps.registry.working()) lease?.interrupt(reason);
      });
      await deps.router.close();
      await sweeper?.ended;
      quiet.abort();
    },
  };
}

/** Requests to abort turns, from this process and from others. */
interface Stops {
  /** Requests an abort. Returns false if the turn is not running. Its holder is notified, or finds the request in the record. */
  stopTurn(address: ActorAddress, turn: TurnId): Promise<boolean>;
  close(): void;
}

function createStops(deps: TurnDeps): Stops {
  const unsubscribe = deps.broadcast.subscribe((notice) => {
    if (notice.type === 'stop') void heedStop(notice.address, notice.turn);
    if (notice.type === 'cancelled') void heedCancellation(notice.tenant, notice.task);
  });
  const unhear = deps.log.onAddressed(async (address, event) => {
    const isCancelled = event.kind === 'delegation.ended' && event.body.outcome === 'cancelled';
    if (isCancelled) {
      const { tenant } = address;
      const { delegation: task } = event.body;
      deps.broadcast.publish({ type: 'cancelled', tenant, task });
      void heedCancellation(tenant, task);
    }
    const policy = event.whileBusy ?? deps.agents.get(address.agent)?.whileBusy;
    if (!isCancelled && policy !== 'interrupt') return;
    const turn = await deps.features.steering?.turnToInterrupt(deps, address, event);
    if (turn) await stopTurn(address, turn);
  });

  async function stopTurn(address: ActorAddress, turn: TurnId): Promise<boolean> {
    if (!(await deps.store.requestAbort(address, turn))) return false;
    deps.registry.find(address)?.lease?.abort(turn);
    deps.broadcast.publish({ type: 'stop', address, turn });
    return true;
  }

  /** Handles a notified abort. Checks the record first, because everybody with access to the channel can send the notice. */
  async function heedStop(address: ActorAddress, turn: TurnId): Promise<void> {
    const lease = deps.registry.find(address)?.lease;
    if (!lease) return;
    try {
      const record = await deps.store.readActor(address);
      if (record?.abort === turn) lease.abort(turn);
    } catch (error) {
      deps.onWarning(error, `stop of ${turn}`);
    }
  }

  /** Handles a notified cancellation. An agent that misses it checks its task before its next model call. */
  async function heedCancellation(tenant: TenantId, task: string): Promise<void> {
    await stopBelow(deps, tenant, task).catch((error: unknown) =>
      deps.onWarning(error, `cancellation of ${task}`),
    );
  }

  return {
    stopTurn,
    close() {
      unsubscribe();
      unhear();
    },
  };
}

function createServe(deps: TurnDeps, { isElsewhere }: Pick<UndefinedAgents, 'isElsewhere'>) {
  const atWork = new Set<string>();

  /**
   * Runs one activation of an actor at a time. After the process hung, a queue may deliver an actor again before its holder here
   * notices that the lease has ended. Two activations would share one machine and one view.
   */
  async function serve(woken: ActorAddress, begun: () => void) {
    const address = deps.agents.former ? presentAddress(deps.agents.former, woken) : woken;
    const key = addressKey(address);
    if (atWork.has(key)) return { kind: 'busy', retryInMs: AT_WORK_PAUSE_MS } as const;
    atWork.add(key);
    try {
      return await serveAlone(address, begun);
    } finally {
      atWork.delete(key);
    }
  }

  async function serveAlone(address: ActorAddress, begun: () => void) {
    try {
      return await activate(deps, address, begun, isElsewhere);
    } catch (error) {
      if (!(error instanceof TroupeError)) throw error;
      if (error.policy === 'retry') {
        deps.onWarning(error, `lease of @${address.agent}`);
        return { kind: 'busy', retryInMs: STORE_PAUSE_MS } as const;
      }
      if (error.code === 'actor_newer') {
        deps.onWarning(error, `@${address.agent}`);
        return { kind: 'busy', retryInMs: NEWER_PAUSE_MS } as const;
      }
      if (error.code !== 'actor_corrupt') throw error;
      await markFailed(deps, address, null, error);
      return { kind: 'done' } as const;
    }
  }

  return serve;
}

function notAccepted({ agent }: ActorAddress, command: 'pause' | 'resume', state: Availability): TroupeError {
  const why = state === 'retired' ? 'is retired: reinstate it first' : `is ${state}: resume it first`;
  return new TroupeError('command_refused', `@${agent} cannot ${command}: it ${why}`, { agent, state });
}

/** Maximum actors that one round finds. The next round finds the rest. */
const BATCH = 1_000;
const EXPIRE_EVERY_MS = 3_600_000;

/**
 * Finds work whose wake was lost: by a crash between append and wake, in a wiped queue, or with a process that died during a
 * turn or a step. It only wakes actors, so a wrong guess costs one read.
 *  P1  One process sweeps per round: the one that claims it. A claim is for one round, so no process can block the task.
 *  P2  Every round checks the events of the window. Older events are checked in the first round, after a full batch, and
 *      again as long as such a check finds something, because its wakes can be lost too.
 *  P3  A process that lost all wakes (`lookAtAll`) checks everything immediately, whichever process claimed the round.
 */
interface Sweeper {
  lookAtAll(): void;
  ended: Promise<void>;
}

function startSweeper(deps: TurnDeps, undefinedAgents: UndefinedAgents, stopped: AbortSignal): Sweeper {
  const call: Call = { isCalled: false, pause: new AbortController() };
  return {
    lookAtAll() {
      call.isCalled = true;
      call.pause.abort();
    },
    ended: runSweeper(deps, undefinedAgents, stopped, call),
  };
}

interface Call {
  isCalled: boolean;
  pause: AbortController;
}

async function runSweeper(
  deps: TurnDeps,
  undefinedAgents: UndefinedAgents,
  stopped: AbortSignal,
  call: Call,
): Promise<void> {
  const { clock, limits, features } = deps;
  const participantsCache = createParticipantsCache(deps.log, deps.checkpoints);
  const endConversations = createEndings(deps, participantsCache);
  let lookAtAll = 0;
  let expireAt = 0;
  while (!stopped.aborted) {
    const now = clock.now();
    const { isCalled } = call;
    call.isCalled = false;
    call.pause = new AbortController();
    try {
      await undefinedAgents.note();
      if ((await claimed(deps, 'sweep', limits.sweepMs * 0.7)) || isCalled) {
        const isFull = isCalled || now >= lookAtAll;
        const due = await sweep(deps, isFull ? 0 : now - limits.sweepWindowMs);
        const found = due.length;
        // Events for actors beyond a full batch may be older than the window in the next round.
        if (isFull || found >= BATCH) lookAtAll = nextFullLook(found, now, limits.sweepWindowMs);
        await features.schedules?.fire(deps, participantsCache);
        await endConversations();
        await undefinedAgents.heed(due);
      }
      if (now >= expireAt && (await claimed(deps, 'expire', EXPIRE_EVERY_MS / 2))) {
        await deps.store.expire('journal', now - KEPT_MS);
        await deps.store.expire('effect', now - KEPT_MS);
        expireAt = now + EXPIRE_EVERY_MS;
      }
    } catch (error) {
      if (isCalled) lookAtAll = 0;
      deps.onWarning(error, 'sweep');
    }
    const idleSince = clock.now() - limits.idleMs;
    deps.registry.trim(idleSince);
    deps.log.trim(idleSince);
    const pauseMs = limits.sweepMs * (0.75 + deps.random() / 2);
    await clock.sleep(pauseMs, AbortSignal.any([stopped, call.pause.signal]), 'look');
  }
}

/** Archives, deletes and erases old conversations. */
function createEndings(deps: TurnDeps, participantsCache: ParticipantsCache): () => Promise<void> {
  const { lifecycle = {}, retention } = deps;
  const endQuiet = createEndQuiet(deps, participantsCache, lifecycle);
  if (!retention) return endQuiet;
  const retain = createRetention(deps, retention, () => ({
    spared: fixedTexts(deps.agents),
    forget(log) {
      participantsCache.forget(log);
      forgetStoredTexts(deps.store);
    },
  }));
  return async () => {
    await endQuiet();
    await retain();
  };
}

function nextFullLook(found: number, now: number, windowMs: number): number {
  if (found === 0) return Number.POSITIVE_INFINITY;
  return found >= BATCH ? now : now + windowMs / 2;
}

async function claimed(deps: EngineDeps, task: string, forMs: number): Promise<boolean> {
  if (deps.limits.soleOwner) return true;
  const now = deps.clock.now();
  return deps.store.claim(task, { owner: deps.process, now, until: now + Math.ceil(forMs) });
}

/** One round. Returns the woken actors. */
async function sweep(deps: EngineDeps, since: number): Promise<ActorAddress[]> {
  const { store, router, clock, limits } = deps;
  // With one owner, a lease belongs to this process, whose queue merges the wake, or to a dead one.
  const now = limits.soleOwner ? Number.MAX_SAFE_INTEGER : clock.now();
  const due = await store.due({ now, clock: clock.now(), since, limit: BATCH });
  for (const address of due) await router.wake(address);
  deps.metrics.count('sweeps', {});
  deps.metrics.count('sweep_found', {}, due.length);
  return due;
}
