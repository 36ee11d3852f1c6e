import { createEndQuiet, fireSchedules } from '../conversations/upkeep.ts';
import { createParticipantsCache } from '../conversations/participants-cache.ts';
import { type EngineDeps, KEPT_MS } from './engine-deps.ts';

/** Actors found at once; the rest is found by the next round. */
const BATCH = 1_000;
/** How often what no turn needs any more is removed. */
const EXPIRE_EVERY_MS = 3_600_000;

/**
 * Finds work that no wake is left for: a crash between append and wake, a wiped queue, a pinned turn or an outbox of
 * a process that is gone. It only wakes; being wrong costs one look.
 *  P1  Of all processes one sweeps per round, whoever claims it; none holds the task, so none can hold it up.
 *  P2  Every round looks at the events of the window. Older ones are looked at by the first round, after a full batch,
 *      and again as long as such a look finds something: a wake that it made may be lost too.
 *  P3  Who lost the wakes of all (`lookAtAll`) looks at everything at once, whoever has claimed the round.
 */
export interface Sweeper {
  lookAtAll(): void;
  ended: Promise<void>;
}

export function startSweeper(deps: EngineDeps, stopped: AbortSignal): Sweeper {
  const call: Call = { isCalled: false, pause: new AbortController() };
  return {
    lookAtAll() {
      call.isCalled = true;
      call.pause.abort();
    },
    ended: runSweeper(deps, stopped, call),
  };
}

interface Call {
  isCalled: boolean;
  /** Ends the pause before the next round. */
  pause: AbortController;
}

async function runSweeper(deps: EngineDeps, stopped: AbortSignal, call: Call): Promise<void> {
  const { clock, limits, schedules = [], lifecycle = {} } = deps;
  const participantsCache = createParticipantsCache(deps.log);
  const endQuiet = createEndQuiet(deps, participantsCache, lifecycle);
  let lookAtAll = 0;
  let expireAt = 0;
  while (!stopped.aborted) {
    const now = clock.now();
    const { isCalled } = call;
    call.isCalled = false;
    call.pause = new AbortController();
    try {
      if ((await claimed(deps, 'sweep', limits.sweepMs * 0.7)) || isCalled) {
        const isFull = isCalled || now >= lookAtAll;
        const found = await sweep(deps, isFull ? 0 : now - limits.sweepWindowMs);
        // What a full page has left out may be older than the window by the next round.
        if (isFull || found >= BATCH) lookAtAll = nextFullLook(found, now, limits.sweepWindowMs);
        await fireSchedules(deps, schedules, participantsCache);
        await endQuiet();
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
    await clock.sleep(pauseMs, AbortSignal.any([stopped, call.pause.signal]));
  }
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

/** One round; returns how many actors were woken. */
export async function sweep(deps: EngineDeps, since: number): Promise<number> {
  const { store, router, clock, limits } = deps;
  // With one owner a live lease is either ours, and then the wake is merged, or that of a dead process.
  const now = limits.soleOwner ? Number.MAX_SAFE_INTEGER : clock.now();
  const due = await store.due({ now, clock: clock.now(), since, limit: BATCH });
  for (const address of due) await router.wake(address);
  deps.metrics.count('sweeps', {});
  deps.metrics.count('sweep_found', {}, due.length);
  return due.length;
}
