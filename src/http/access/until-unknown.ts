import type { Clock } from '../../clock.ts';

/** How often those who have a stream open are asked for again. With what is remembered of keys it ends within 5 s. */
const LOOK_MS = 2_500;

/** Aborts `open` once its caller is nobody any more, or somebody else. Ends when `open` is aborted. */
export async function untilUnknown(
  isStillGood: () => Promise<boolean>,
  clock: Pick<Clock, 'sleep'>,
  open: AbortController,
): Promise<void> {
  const { signal } = open;
  for (;;) {
    await clock.sleep(LOOK_MS, signal);
    if (signal.aborted) return;
    // What cannot be looked up now is looked up next time.
    if (!(await isStillGood().catch(() => true))) return open.abort();
  }
}
