import { latestCompaction } from '../../context/index.ts';
import type { CompactionEvent } from '../../machines/compaction.ts';
import { readCompaction, takeLock } from './compaction-lock.ts';
import type { TurnCompaction } from './turn-compaction.ts';

const LOOK_MS = 250;

/**
 * Waits for the compaction that another agent of this conversation is making: one call serves the company. No longer
 * than a lease, as that agent may be gone; the machine asks for the lock again, and in the end goes on without a model.
 */
export async function awaitOther({ run }: TurnCompaction): Promise<CompactionEvent> {
  const { deps, live, lease } = run;
  const { view, address } = live;
  const number = (latestCompaction(view)?.body.number ?? 0) + 1;
  const quit = AbortSignal.any([lease.signal, deps.stopping]);
  const patience = deps.clock.monotonic() + deps.limits.leaseMs;
  while (!quit.aborted) {
    const event = await readCompaction(deps.store, address, number);
    if (event) {
      view.compactions.set(event.id, event.body);
      return { type: 'ADOPTABLE' };
    }
    if (deps.clock.monotonic() >= patience || (await takeLock(run, number))) return { type: 'LOCK_EXPIRED' };
    await deps.clock.sleep(LOOK_MS, quit);
  }
  return { type: 'ABORTED' };
}
