import type { EngineDeps } from './engine-deps.ts';

/** Actors found at once; the rest is found by the next round. */
const BATCH = 1_000;

/**
 * Finds work that no wake is left for: a crash between append and wake, a wiped queue, a pinned turn or an outbox of
 * a process that is gone. It only wakes; being wrong costs one look.
 */
export async function startSweeper(deps: EngineDeps, stopped: AbortSignal): Promise<void> {
  const { clock, limits } = deps;
  let since = 0;
  while (!stopped.aborted) {
    try {
      const found = await sweep(deps, since);
      // The window only saves work: until a round has found nothing, what is older may still wait behind a full batch.
      if (found === 0) since = clock.now() - limits.sweepWindowMs;
    } catch (error) {
      deps.onWarning(error, 'sweep');
    }
    const idleSince = clock.now() - limits.idleMs;
    deps.registry.trim(idleSince);
    deps.log.trim(idleSince);
    await clock.sleep(limits.sweepMs * (0.75 + deps.random() / 2), stopped);
  }
}

/** One round; returns how many actors were woken. */
export async function sweep(deps: EngineDeps, since: number): Promise<number> {
  const { store, router, clock, limits } = deps;
  // With one owner a live lease is either ours, and then the wake is merged, or that of a dead process.
  const now = limits.soleOwner ? Number.MAX_SAFE_INTEGER : clock.now();
  const due = await store.due({ now, since, limit: BATCH });
  for (const address of due) await router.wake(address);
  return due.length;
}
