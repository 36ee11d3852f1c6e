import type { Clock } from '../../clock.ts';

/**
 * Warns once when a service becomes unavailable and once when it returns, however many calls notice. It is unavailable
 * while any of its parts is: a connection to publish and one to listen are lost and found one by one.
 */
export interface Outage {
  begin(part: string, error: unknown): void;
  end(part: string): void;
}

export interface OutageWords {
  /** `where` of the warnings. */
  where: string;
  /** What the service is, and what goes on without it: `Redis is away: …`. */
  away: string;
  back: string;
}

export function createOutage(
  onWarning: (error: unknown, where: string) => void,
  { where, away, back }: OutageWords,
): Outage {
  const parts = new Set<string>();
  return {
    begin(part, error) {
      const known = parts.size > 0;
      parts.add(part);
      if (known) return;
      const why = error instanceof Error ? error.message : String(error);
      onWarning(new Error(`${away} (${why})`, { cause: error }), where);
    },
    end(part) {
      if (!parts.delete(part) || parts.size > 0) return;
      onWarning(back, where);
    },
  };
}

type Warn = (error: unknown, where: string) => void;

const EVERY_MS = 10_000;
const MAX_KINDS = 100;

/** Passes one warning of each kind per ten seconds: a failing Redis repeats the same one for each job. */
export function limitWarnings(onWarning: Warn, clock: Clock): Warn {
  const reportedAt = new Map<string, number>();
  return (error, where) => {
    const text = error instanceof Error ? error.message : String(error);
    // Warnings that differ only in numbers are of one kind.
    const kind = `${where}: ${text.replaceAll(/\d+/g, '#').slice(0, 60)}`;
    const now = clock.monotonic();
    if (now - (reportedAt.get(kind) ?? Number.NEGATIVE_INFINITY) < EVERY_MS) return;
    if (reportedAt.size >= MAX_KINDS) reportedAt.clear();
    reportedAt.set(kind, now);
    try {
      onWarning(error, where);
    } catch {
      // Called from listeners of BullMQ, which must not throw; a warning that cannot be told has no other place.
    }
  };
}
