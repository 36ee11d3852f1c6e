/**
 * Long work in steps. Each `yield` gives the characters processed since the last one, and the driver may let other
 * work run. The result does not depend on the driver.
 */
export type Steps<T> = Generator<number, T, void>;

/** Runs all steps without pauses: for short work, and where nothing else waits. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}
