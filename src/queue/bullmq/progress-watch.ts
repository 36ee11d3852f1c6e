import type { Clock } from '../../clock.ts';

/**
 * Watches that wakes are really taken. A worker may be alive, connected and deaf, after a failover for example, and no
 * status of it tells; what tells is work that waits while this process has room and takes none.
 *  D1  Deaf is: at every look in `deafMs` there was overdue work and room, and nothing was taken.
 *  D2  The first time the worker is replaced; if the next one takes nothing either, `onDeaf`, and the process should end.
 *  D3  A Redis that does not answer is no deafness: the count starts anew.
 */
export interface ProgressWatchDeps {
  clock: Clock;
  signal: AbortSignal;
  deafMs: number;
  everyMs: number;
  /** Overdue work of the whole queue. */
  countOverdue: () => Promise<number>;
  hasRoom: () => boolean;
  /** How many wakes this process has taken so far. */
  countTaken: () => number;
  replaceWorker: () => void;
  onDeaf: () => void;
}

export async function watchProgress(deps: ProgressWatchDeps): Promise<void> {
  const { clock, signal } = deps;
  let takenBefore = deps.countTaken();
  let idleSince = clock.monotonic();
  let replaced = false;

  for (;;) {
    await clock.sleep(deps.everyMs, signal);
    if (signal.aborted) return;
    const taken = deps.countTaken();
    if (taken !== takenBefore) replaced = false;
    const stuck = taken === takenBefore && deps.hasRoom() && (await waits(deps.countOverdue));
    takenBefore = taken;
    if (!stuck) {
      idleSince = clock.monotonic();
    } else if (clock.monotonic() - idleSince >= deps.deafMs) {
      idleSince = clock.monotonic();
      if (replaced) deps.onDeaf();
      else deps.replaceWorker();
      replaced = true;
    }
  }
}

async function waits(countOverdue: () => Promise<number>): Promise<boolean> {
  try {
    return (await countOverdue()) > 0;
  } catch {
    // D3; the connection tells that Redis is away.
    return false;
  }
}
