import type { Clock } from '../../clock.ts';

export type Warn = (error: unknown, where: string) => void;

const EVERY_MS = 10_000;
const MAX_KINDS = 100;

/** Lets a warning of each kind through every ten seconds: a Redis in trouble tells the same for each job. */
export function limitWarnings(onWarning: Warn, clock: Clock): Warn {
  const toldAt = new Map<string, number>();
  return (error, where) => {
    const text = error instanceof Error ? error.message : String(error);
    // Job ids and numbers make no new kind.
    const kind = `${where}: ${text.replaceAll(/\d+/g, '#').slice(0, 60)}`;
    const now = clock.monotonic();
    if (now - (toldAt.get(kind) ?? Number.NEGATIVE_INFINITY) < EVERY_MS) return;
    if (toldAt.size >= MAX_KINDS) toldAt.clear();
    toldAt.set(kind, now);
    try {
      onWarning(error, where);
    } catch {
      // Called from listeners of BullMQ, which must not throw; a warning that cannot be told has no other place.
    }
  };
}
