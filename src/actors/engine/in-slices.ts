import type { Clock } from '../../base/clock.ts';
import type { Steps } from '../../context/index.ts';
import { TroupeError } from '../../base/errors.ts';
import { slicesOf } from '../../base/slices.ts';

/** Characters per slice: about 10 ms of work, before timers, sockets and other actors are served. */
const SLICE_CHARS = 32_768;

/** The characters that the context work of one turn may still process. */
export interface TurnWork {
  left: number;
}

/**
 * Runs long pure work in slices. Between them the event loop renews leases and serves others. Throws `context_too_costly` once
 * the work of the turn is used up.
 */
export async function inSlices<T>(
  clock: Pick<Clock, 'monotonic' | 'sleep'>,
  steps: Steps<T>,
  work?: TurnWork,
): Promise<T> {
  let chars = 0;
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    if (work && (work.left -= step.value) < 0) throw tooCostly();
    chars += step.value;
    if (chars < SLICE_CHARS) continue;
    chars = 0;
    await slicesOf(clock).next();
  }
}

export function tooCostly(): TroupeError {
  return new TroupeError(
    'context_too_costly',
    'what was said since the last compaction takes more work to read and compact than one turn may cost; begin another conversation, or import a part of this one',
  );
}
