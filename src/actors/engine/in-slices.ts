import type { Clock } from '../../clock.ts';
import type { Steps } from '../../context/index.ts';
import { slicesOf } from '../../slices.ts';

/** Characters that are looked at in one go: some 10 ms, after which timers, sockets and other actors have their turn. */
const SLICE_CHARS = 32_768;

/** Long pure work, with the event loop given back again and again: a lease is renewed and others are served meanwhile. */
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
