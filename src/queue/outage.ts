import type { Clock } from '../base/clock.ts';

/**
 * Warns once when a service becomes unavailable and once when it returns, however many calls fail. The service is
 * unavailable while any of its parts is: connections for publishing and for listening are lost and restored separately.
 */
export interface Outage {
  /** This part is unavailable. */
  begin(part: string, error: unknown): void;
  /** This part is available again. */
  end(part: string): void;
}

/** Receives errors that did not stop the work. */
export type Warn = (error: unknown, where: string) => void;

/** `away` and `back` are the texts of the warnings, `where` their place. */
export function createOutage(
  onWarning: Warn,
  { where, away, back }: { where: string; away: string; back: string },
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

const EVERY_MS = 10_000;
const MAX_KINDS = 100;

/** Passes one warning of each kind per ten seconds: a failing server causes the same one for each job. */
export function limitWarnings(onWarning: Warn, clock: Clock): Warn {
  const warnedAt = new Map<string, number>();
  return (error, where) => {
    const text = error instanceof Error ? error.message : String(error);
    // Warnings that differ only in numbers are of the same kind.
    const kind = `${where}: ${text.replaceAll(/\d+/g, '#').slice(0, 60)}`;
    const now = clock.monotonic();
    if (now - (warnedAt.get(kind) ?? Number.NEGATIVE_INFINITY) < EVERY_MS) return;
    if (warnedAt.size >= MAX_KINDS) warnedAt.clear();
    warnedAt.set(kind, now);
    try {
      onWarning(error, where);
    } catch {
      // Called from listeners, which must not throw. A warning that cannot be delivered is dropped.
    }
  };
}

/** Asks a server within a time limit; null if it is unavailable. If the answer comes after the limit, `late` is called. */
export type AskServer = <T>(question: () => Promise<T>, late?: () => void) => Promise<T | null>;

interface AskServerOptions {
  /** Its name in warnings. */
  server: string;
  /** Receives a warning when the server becomes unavailable, and when it is back. */
  onWarning: Warn;
  /** Called with the error of each question without an answer. */
  onFailed?: ((error: unknown) => void) | undefined;
  /** The server counts as unavailable after this long without an answer. Default 1,000. */
  answerMs?: number | undefined;
  /** The reason why nothing can be asked now, else null. Default: null. */
  whyNot?: () => string | null;
}

/** For admission, which never waits longer than `answerMs`, and never delays a turn because no answer came. */
export function createAskServer({
  server,
  onWarning,
  onFailed = () => {},
  answerMs = 1_000,
  whyNot = () => null,
}: AskServerOptions): AskServer {
  const outage = createOutage(onWarning, {
    where: 'admission',
    away: `${server} is unavailable: turns and model calls are admitted without regard to caps until it is back`,
    back: `${server} is back: caps hold again`,
  });
  return async (question, late = () => {}) => {
    const limit = Promise.withResolvers<'late'>();
    const timer = setTimeout(() => limit.resolve('late'), answerMs);
    try {
      const why = whyNot();
      if (why !== null) throw new Error(why);
      const asked = question();
      const answer = await Promise.race([asked.then((found) => ({ found })), limit.promise]);
      if (answer === 'late') {
        asked.then(late, () => {});
        throw new Error(`no answer for ${answerMs} ms`);
      }
      outage.end(server);
      return answer.found;
    } catch (error) {
      onFailed(error);
      outage.begin(server, error);
      return null;
    } finally {
      clearTimeout(timer);
    }
  };
}
