import type { Clock } from '../../clock.ts';
import type { Steps } from '../../context/index.ts';
import { slicesOf } from '../../slices.ts';

/** Characters per slice: about 10 ms of work, before timers, sockets and other actors are served. */
const SLICE_CHARS = 32_768;

/** Runs long pure work in slices. Between them the event loop renews leases and serves others. */
export async function inSlices<T>(clock: Pick<Clock, 'monotonic' | 'sleep'>, steps: Steps<T>): Promise<T> {
  let chars = 0;
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    chars += step.value;
    if (chars < SLICE_CHARS) continue;
    chars = 0;
    await slicesOf(clock).next();
  }
}
