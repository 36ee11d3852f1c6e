/**
 * Long work in steps: each `yield` says how many characters were looked at since the one before. Whoever drives it may
 * let others run in between. What comes out is the same however it is driven.
 */
export type Steps<T> = Generator<number, T, void>;

/** Without a pause: for what is short, and where nobody waits. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}
