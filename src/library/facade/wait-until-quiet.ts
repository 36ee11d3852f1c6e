import type { Clock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import type { Router } from '../../queue/router.ts';

/** The first checks are one turn of the event loop apart, later ones `PAUSE_MS`. */
const QUICK_CHECKS = 50;
const PAUSE_MS = 5;
const UNANSWERED_PAUSE_MS = 100;
/** Time without an answer after which the queue counts as unavailable: a busy process may fail single checks. */
const PATIENCE_MS = 10_000;

/**
 * Resolves when no wake is waiting or running. Throws `queue_unavailable` if the queue has not answered for 10 s, or is
 * unavailable once `closed`.
 */
export async function waitUntilQuiet(
  router: Pick<Router, 'depth'>,
  { clock, closed }: { clock: Clock; closed: AbortSignal },
): Promise<void> {
  let answeredAt = clock.monotonic();
  for (let checks = 0; ; checks++) {
    let pauseMs = checks < QUICK_CHECKS ? 0 : PAUSE_MS;
    try {
      const { waiting, active, delayed } = await router.depth();
      if (waiting + active + delayed === 0) return;
      answeredAt = clock.monotonic();
    } catch (error) {
      const isUnavailable = error instanceof TroupeError && error.code === 'queue_unavailable';
      if (!isUnavailable || closed.aborted || clock.monotonic() - answeredAt > PATIENCE_MS) throw error;
      pauseMs = UNANSWERED_PAUSE_MS;
    }
    await clock.sleep(pauseMs);
  }
}
