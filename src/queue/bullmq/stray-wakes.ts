import type { Clock } from '../../clock.ts';

/**
 * Finds wakes that swallow others and are never served themselves. BullMQ merges a wake into the job that its
 * deduplication key names; if that job is in no list any more (a list lost, a job half removed), every later wake of
 * the actor would vanish in it for ever. BullMQ itself heals the case that the job is gone altogether.
 *
 * Owns: for the actors woken lately, into which job and since when. A wake merged into the same job for `afterMs` makes
 * it suspect; `look` then finds out what it is. At most one look at a time, and never more often than every
 * `LOOK_EVERY_MS`: a job that merely waits long is looked at too.
 */
export interface StrayDeps {
  clock: Clock;
  afterMs: number;
  /** Finds out about a suspect job and mends what is wrong. Never rejects. */
  look: (key: string, jobId: string) => Promise<void>;
}

const LOOK_EVERY_MS = 100;
const MAX_REMEMBERED = 10_000;

export function createStrayWatch({ clock, afterMs, look }: StrayDeps) {
  const merged = new Map<string, { jobId: string; since: number }>();
  let lookedAt = Number.NEGATIVE_INFINITY;
  let looking = false;

  function added(key: string, jobId: string): void {
    const now = clock.monotonic();
    const last = merged.get(key);
    if (last?.jobId !== jobId) return remember(key, jobId, now);
    if (now - last.since < afterMs || looking || now - lookedAt < LOOK_EVERY_MS) return;
    looking = true;
    lookedAt = now;
    last.since = now;
    void look(key, jobId).finally(() => (looking = false));
  }

  function remember(key: string, jobId: string, since: number): void {
    merged.delete(key);
    merged.set(key, { jobId, since });
    if (merged.size <= MAX_REMEMBERED) return;
    const [oldest] = merged.keys();
    if (oldest !== undefined) merged.delete(oldest);
  }

  return { added };
}
