import { randomBytes } from 'node:crypto';
import { systemClock } from '../../clock.ts';
import type { Troupe } from '../../troupe.ts';
import type { FoundAgents } from '../client/find-agents.ts';
import { version } from '../version.ts';
import { type OperatorFlags, readOperators } from './operator-flags.ts';
import type { OpenTroupe } from './reloader.ts';

export interface OpenDevOptions extends OperatorFlags {
  host: string;
  data: string;
  concurrency?: number;
  record?: string;
  replay?: string[];
  readOnly?: boolean;
}

/** A running troupe of `troupe dev`. */
export interface DevTroupe extends OpenTroupe {
  troupe: Troupe;
}

/** Returns how `troupe dev` opens its agents on the data directory, with an app that admits callers of `host`. */
export async function createDevOpener(
  options: OpenDevOptions,
): Promise<(found: FoundAgents) => Promise<DevTroupe>> {
  const { host, data, concurrency, record, replay, readOnly } = options;
  const [
    { createTroupe },
    { createApp, isLoopback },
    { createMetrics },
    { callerOptions, readToken, requireCredentials },
  ] = await Promise.all([
    import('../../runtime.ts'),
    import('../../http/index.ts'),
    import('../../http/metrics.ts'),
    import('./require-token.ts'),
  ]);
  const token = readToken(process.env);
  // Output stays human-readable unless log lines are requested.
  const { onError, ...operators } = await readOperators(options, process.env, null);
  // One for all reloads: an open page goes on.
  const writeToken = randomBytes(24).toString('base64url');
  return async function openDev(found) {
    const ending = new AbortController();
    const metrics = createMetrics({ version: version() });
    const troupe = await createTroupe(found.definition, {
      data,
      metrics,
      ...operators,
      record,
      replay,
      ...(concurrency !== undefined && { concurrency }),
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
      return { found, troupe, fetch: app.fetch, close };
    } catch (error) {
      await close();
      throw error;
    }
  };
}
