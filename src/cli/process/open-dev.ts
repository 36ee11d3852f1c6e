import { randomBytes } from 'node:crypto';
import { systemClock } from '../../base/clock.ts';
import type { Durability } from '../../store/sqlite/sqlite-driver.ts';
import type { Troupe } from '../../library/troupe.ts';
import { type FoundAgents, rememberAgents } from '../client/find-agents.ts';
import { version } from '../version.ts';
import { type OperatorFlags, readOperators } from './operator-flags.ts';
import type { OpenTroupe } from './reloader.ts';

export interface OpenDevOptions extends OperatorFlags {
  host: string;
  data: string;
  concurrency?: number;
  durability?: Durability;
  record?: string;
  replay?: string[];
  readOnly?: boolean;
}

/** A running troupe of `troupe dev`. */
export interface DevTroupe extends OpenTroupe {
  troupe: Troupe;
}

/**
 * Owns the lock of the data directory, also between two troupes: a command in that moment finds the server's address
 * and waits for its answer. With a lock per troupe, it would open the data itself, and the server could not.
 */
export interface DevOpener extends Disposable {
  /** Opens agents on the data directory, with an app that admits callers of `host`. One troupe at a time. */
  open: (found: FoundAgents) => Promise<DevTroupe>;
  /** Lets commands of this machine find the server. */
  announce(url: string): void;
  /** Gives the data directory back. */
  [Symbol.dispose](): void;
}

/** Data that is in memory only. */
export const MEMORY = ':memory:';

/** Throws `data_busy`, `data_unwritable`. */
export async function createDevOpener(options: OpenDevOptions): Promise<DevOpener> {
  const { host, data, concurrency, durability, record, replay, readOnly } = options;
  const [
    { openTroupe },
    { createApp, isLoopback },
    { createMetrics },
    { callerOptions, readToken, requireCredentials },
    { lockDataDir },
    { writeServerInfo },
  ] = await Promise.all([
    import('../../library/runtime/create-troupe.ts'),
    import('../../http/api/index.ts'),
    import('../../http/metrics.ts'),
    import('./require-token.ts'),
    import('../../store/sqlite/data-lock.ts'),
    import('../../store/sqlite/server-info.ts'),
  ]);
  const token = readToken(process.env);
  // Output stays human-readable unless log lines are requested.
  const { onError, ...operators } = await readOperators(options, process.env, null);
  // One for all reloads: an open page goes on.
  const writeToken = randomBytes(24).toString('base64url');
  const lock = data === MEMORY ? undefined : lockDataDir(data);

  async function open(found: FoundAgents): Promise<DevTroupe> {
    const ending = new AbortController();
    const metrics = createMetrics({ version: version() });
    const troupe = await openTroupe(found.definition, {
      data,
      lock,
      metrics,
      ...operators,
      record,
      replay,
      ...(concurrency !== undefined && { concurrency }),
      ...(durability !== undefined && { durability }),
    });
    async function close(): Promise<void> {
      ending.abort();
      await troupe.close();
    }
    try {
      const { access } = found.definition;
      const isOpen = isLoopback(host);
      const why = `${host} is reachable from other machines`;
      if (!isOpen) await requireCredentials(troupe, { token, access, now: systemClock.now(), why });
      const app = createApp(troupe, {
        signal: ending.signal,
        ...callerOptions(troupe, token, access),
        keyless: isOpen ? 'local' : 'refused',
        metrics,
        onError,
        readOnly,
        version: version(),
        writeToken,
      });
      if (lock) rememberAgents(data, found);
      return { found, troupe, fetch: app.fetch, close };
    } catch (error) {
      await close();
      throw error;
    }
  }
  return {
    open,
    announce: (url) => lock && writeServerInfo(data, { pid: process.pid, url }),
    [Symbol.dispose]: () => lock?.release(),
  };
}
