import { TroupeError } from '../../errors.ts';
import {
  type ActorAddress,
  addressKey,
  parseTurnId,
  type TenantId,
  type TurnId,
} from '../../events/index.ts';
import type { Availability } from '../../machines/availability.ts';
import { pathOf } from '../../machines/agent-lifecycle.ts';
import { changeAvailability } from './change-availability.ts';
import { activate, park } from './activate.ts';
import type { EngineDeps } from './engine-deps.ts';
import { turnToInterrupt } from '../steering/interrupt-turn.ts';
import { type Sweeper, startSweeper } from './sweeper.ts';
import { stopBelow } from '../tasks/called-off.ts';
import { tellParked } from '../turn/transition.ts';

/** The turn engine of one process: serves wakes, sweeps, and carries out what people ask of actors. */
export interface Engine {
  start(options: { concurrency: number }): void;
  /** Asks a running turn to stop; once acknowledged, no reply of that turn follows. False if it is not running. */
  abort(tenant: TenantId, turn: TurnId): Promise<boolean>;
  pause(address: ActorAddress): Promise<void>;
  /** `as` is what its machine calls it. */
  resume(address: ActorAddress, as?: 'RESUME' | 'RETRY' | 'REINSTATE'): Promise<void>;
  /**
   * Finishes the steps under way, gives the leases back, and resolves when all is quiet. What still runs after
   * `STOP_GRACE_MS` is broken off; its turns stay pinned for whoever takes them next.
   */
  stop(): Promise<void>;
}

/** Before an actor whose store was away is looked at again. */
const STORE_PAUSE_MS = 1_000;
/** Before an actor that is still at work in this very process is looked at again. */
const AT_WORK_PAUSE_MS = 1_000;
/** Before a newer process, which can read it, may have taken an actor that this one cannot read. */
const NEWER_PAUSE_MS = 5_000;
const STOP_GRACE_MS = 7_000;

export function createEngine(deps: EngineDeps, stopping: AbortController): Engine {
  let sweeper: Sweeper | null = null;
  const atWork = new Set<string>();
  const unsubscribe = deps.broadcast.subscribe((notice) => {
    if (notice.type === 'stop') void heedStop(notice.address, notice.turn);
    if (notice.type === 'called off') void heedCallOff(notice.tenant, notice.task);
  });
  const unhear = deps.log.onAddressed(async (address, event) => {
    if (event.kind === 'delegation.aborted') {
      const { tenant } = address;
      const { delegation: task } = event.body;
      deps.broadcast.publish({ type: 'called off', tenant, task });
      void heedCallOff(tenant, task);
    }
    const turn = await turnToInterrupt(deps, address, event);
    if (turn) await stopTurn(address, turn);
  });

  /** False if it is not running. Whoever holds it hears at once, or finds it in the record. */
  async function stopTurn(address: ActorAddress, turn: TurnId): Promise<boolean> {
    if (!(await deps.store.requestCancel(address, turn))) return false;
    deps.registry.find(address)?.lease?.abort(turn);
    deps.broadcast.publish({ type: 'stop', address, turn });
    return true;
  }

  /** Anybody who can reach the channel may say so: what counts is the record, which the next renewal reads anyway. */
  async function heedStop(address: ActorAddress, turn: TurnId): Promise<void> {
    const lease = deps.registry.find(address)?.lease;
    if (!lease) return;
    try {
      const record = await deps.store.readActor(address);
      if (record?.cancel === turn) lease.abort(turn);
    } catch (error) {
      deps.onWarning(error, `stop of ${turn}`);
    }
  }

  /** Who does not hear looks before it asks its model again. */
  async function heedCallOff(tenant: TenantId, task: string): Promise<void> {
    await stopBelow(deps, tenant, task).catch((error: unknown) =>
      deps.onWarning(error, `call-off of ${task}`),
    );
  }

  /**
   * One activation of an actor at a time. A queue may hand it out again while a holder here, whose lease ran out while
   * the process stood still, has not noticed yet: the two would share one machine and one view.
   */
  async function serve(address: ActorAddress) {
    const key = addressKey(address);
    if (atWork.has(key)) return { kind: 'busy', retryInMs: AT_WORK_PAUSE_MS } as const;
    atWork.add(key);
    try {
      return await serveAlone(address);
    } finally {
      atWork.delete(key);
    }
  }

  async function serveAlone(address: ActorAddress) {
    try {
      return await activate(deps, address);
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
      await park(deps, address, null, error);
      return { kind: 'done' } as const;
    }
  }

  return {
    start({ concurrency }) {
      deps.router.start(serve, {
        concurrency,
        onError: (error, address) => deps.onWarning(error, `wake of @${address.agent}`),
        onLost: () => sweeper?.lookAtAll(),
      });
      sweeper = startSweeper(deps, stopping.signal);
    },
    async abort(tenant, turn) {
      const parts = parseTurnId(turn);
      if (!parts) return false;
      const address = { tenant, conversation: parts.conversation, agent: parts.agent };
      if (!(await stopTurn(address, turn))) return false;
      // Nobody may be holding it: then the next holder must find it. A wake that is lost is the sweeper's.
      await deps.router.wake(address).catch((error: unknown) => deps.onWarning(error, 'wake'));
      return true;
    },
    async pause(address) {
      const { kind, state } = await changeAvailability(deps, address, { type: 'PAUSE' });
      if (kind === 'refused' && state !== 'paused') throw notAccepted(address, 'pause', state);
      if (kind === 'changed') tellParked(deps, address, 'PAUSE', state);
    },
    async resume(address, as = 'RESUME') {
      const { kind, state } = await changeAvailability(deps, address, { type: as });
      if (kind === 'refused' && state !== 'available') throw notAccepted(address, 'resume', state);
      const live = deps.registry.find(address);
      tellParked(deps, address, as, live ? pathOf(live.state.value) : 'idle');
      // At work it needs no fresh start, and stopping its machine would leave the turn without one.
      if (!deps.registry.find(address)?.lease) deps.registry.drop(address);
      await deps.router.wake(address).catch((error: unknown) => deps.onWarning(error, 'wake'));
    },
    async stop() {
      const reason = new TroupeError('shutting_down', 'the process is ending');
      stopping.abort(reason);
      unsubscribe();
      unhear();
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

function notAccepted({ agent }: ActorAddress, command: 'pause' | 'resume', state: Availability): TroupeError {
  const why = state === 'retired' ? 'is retired: recall it first' : `is ${state}: resume it first`;
  return new TroupeError('command_refused', `@${agent} cannot ${command}: it ${why}`, { agent, state });
}
