import type { Clock } from '../clock.ts';
import { TroupeError } from '../errors.ts';
import type { Router } from '../queue/router.ts';

/** This many looks are one turn of the event loop apart, the others `PAUSE_MS`. */
const QUICK_LOOKS = 50;
const PAUSE_MS = 5;
const AWAY_PAUSE_MS = 100;
/** A queue that does not answer for so long is away. A single look may fail in a process that was busy for seconds. */
const PATIENCE_MS = 10_000;

/**
 * Resolves when no wake is waiting or running. Of a queue that is `closed` nothing more is hoped for.
 *
 * @throws `queue_unavailable` when the queue has not answered for 10 s.
 */
export async function waitUntilQuiet(
  router: Pick<Router, 'depth'>,
  { clock, closed }: { clock: Clock; closed: AbortSignal },
): Promise<void> {
  let answeredAt = clock.monotonic();
  for (let looks = 0; ; looks++) {
    let pauseMs = looks < QUICK_LOOKS ? 0 : PAUSE_MS;
    try {
      const { waiting, active, delayed } = await router.depth();
      if (waiting + active + delayed === 0) return;
      answeredAt = clock.monotonic();
    } catch (error) {
      const isAway = error instanceof TroupeError && error.code === 'queue_unavailable';
      if (!isAway || closed.aborted || clock.monotonic() - answeredAt > PATIENCE_MS) throw error;
      pauseMs = AWAY_PAUSE_MS;
    }
    await clock.sleep(pauseMs);
  }
}
