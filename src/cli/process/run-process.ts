import type { TroupeInput } from '../../library/config/agents-file.ts';
import { TroupeError } from '../../base/errors.ts';
import type { ProcessMetrics } from '../../http/metrics.ts';
import type { Troupe } from '../../library/troupe.ts';
import { findAgents, type FoundAgents } from '../client/find-agents.ts';
import { onInterrupt } from './interrupt.ts';
import { type OperatorFlags, readOperators } from './operator-flags.ts';
import { readServiceUrls, type UrlOptions, type ServiceUrls, shownServices } from './service-urls.ts';
import { version } from '../version.ts';

/** Parts that `serve` and `worker` share: services, agents and shutdown. */
export interface ProcessParts {
  troupe: Troupe;
  metrics: ProcessMetrics;
  found: FoundAgents;
  /** URLs without credentials, for display. */
  services: ServiceUrls;
  /** Receives errors of requests that are answered with 500. */
  onError: (error: unknown) => void;
  /** Aborts with the first SIGTERM or Ctrl-C. */
  signal: AbortSignal;
}

interface ProcessOptions extends UrlOptions, OperatorFlags {
  /** Turns at once; null takes none. */
  concurrency: number | null;
  record?: string;
  replay?: string[];
}

/** EX_SOFTWARE of sysexits: the process itself is at fault; a supervisor may restart it. */
export const AT_FAULT = 70;
/** Longest time from the signal to the exit, even if something hangs: orchestrators kill after 10 s. */
const LAST_RESORT_MS = 9_000;

/** Opens the distributed mode, runs `body` and closes everything. Throws what `createTroupe` throws. */
export async function runProcess(
  file: string | undefined,
  options: ProcessOptions,
  body: (parts: ProcessParts) => Promise<void>,
): Promise<void> {
  const services = readServiceUrls(options, process.env);
  const found = await requireAgents(file);
  const { onError, ...operators } = await readOperators(options, process.env, 'info');
  const [{ createTroupe }, { createMetrics }] = await Promise.all([
    import('../../library/runtime/create-troupe.ts'),
    import('../../http/metrics.ts'),
  ]);
  const stop = new AbortController();
  const dispose = onInterrupt(() => stop.abort(), { withinMs: LAST_RESORT_MS });
  try {
    const metrics = createMetrics({ version: version() });
    const { concurrency, record, replay } = options;
    const troupe = await createTroupe(found.definition, {
      ...services,
      metrics,
      ...operators,
      ...(concurrency === null ? { work: false } : { concurrency, onDeaf: endDeaf, record, replay }),
    });
    try {
      await body({ troupe, metrics, found, services: shownServices(services), onError, signal: stop.signal });
    } finally {
      await troupe.close();
    }
  } finally {
    dispose();
  }
}

/** Shuts down in the ordinary way, but with an exit code that reports a fault. */
function endDeaf(): void {
  process.stderr.write(
    'deaf: wakes are waiting but none arrives here; exiting so that a supervisor can restart this process\n',
  );
  process.exitCode = AT_FAULT;
  process.kill(process.pid, 'SIGTERM');
}

export function agentNames({ agents }: TroupeInput): string {
  return agents.map(({ id }) => `@${id}`).join(' ');
}

/** Never falls back to the demo company: a missing agents file must not put other agents in production. */
async function requireAgents(file: string | undefined): Promise<FoundAgents> {
  const found = await findAgents(file);
  if (found) return found;
  const message = 'no agents file found: write agents.ts, .js, .mjs, .json or .yaml, or name one';
  throw new TroupeError('config_invalid', message);
}
