import { latestCompaction } from '../../context/index.ts';
import type { ReliefEvent } from '../../machines/compaction.ts';
import { compactionId, lockFree } from './compaction-lock.ts';
import type { TurnRelief } from './relief-work.ts';

const LOOK_MS = 250;

/** Waits for the compaction that another agent of this conversation is making: one call serves the company. */
export async function awaitOther({ run }: TurnRelief): Promise<ReliefEvent> {
  const { deps, live, lease } = run;
  const { view, address } = live;
  const number = (latestCompaction(view)?.body.number ?? 0) + 1;
  const quit = AbortSignal.any([lease.signal, deps.stopping]);
  while (!quit.aborted) {
    const event = await deps.store.readById(address, compactionId(number));
    if (event?.kind === 'compaction') {
      view.compactions.set(event.id, event.body);
      return { type: 'ADOPTABLE' };
    }
    if (await lockFree(run, number)) return { type: 'LOCK_EXPIRED' };
    await deps.clock.sleep(LOOK_MS, quit);
  }
  return { type: 'ABORTED' };
}
