/**
 * Long work in steps. Each `yield` returns the number of characters processed since the last one, and the caller may then let
 * other work run. The result does not depend on the caller.
 */
export type Steps<T> = Generator<number, T, void>;

/** Runs all steps without pauses. For short work, and if no other work waits. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}
