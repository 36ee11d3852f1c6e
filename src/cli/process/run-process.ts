import type { TroupeInput } from '../../config/agents-file.ts';
import { TroupeError } from '../../errors.ts';
import type { ProcessMetrics } from '../../http/metrics.ts';
import type { Troupe } from '../../troupe.ts';
import { findAgents, type FoundAgents } from '../client/find-agents.ts';
import { onInterrupt } from './interrupt.ts';
import { type OperatorFlags, readOperators } from './operator-flags.ts';
import { readServiceUrls, type UrlOptions, type ServiceUrls, shownUrl } from './service-urls.ts';
import { version } from '../version.ts';

/** What `serve` and `worker` have in common: the services, the agents, and the way to an end. */
export interface ProcessParts {
  troupe: Troupe;
  metrics: ProcessMetrics;
  found: FoundAgents;
  /** As they may be shown. */
  services: ServiceUrls;
  /** Hears of requests that end with 500. */
  onError: (error: unknown) => void;
  /** Aborts with the first SIGTERM or Ctrl-C. */
  signal: AbortSignal;
}

export interface ProcessOptions extends UrlOptions, OperatorFlags {
  /** Turns at once; null takes none. */
  concurrency: number | null;
  record?: string;
  replay?: string[];
}

/** EX_SOFTWARE of sysexits: the process itself is at fault, and whoever supervises it may start it again. */
export const AT_FAULT = 70;
/** From the signal to the end of the process, whatever hangs: orchestrators kill after 10 s. */
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
    import('../../runtime.ts'),
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
      await body({ troupe, metrics, found, services: shown(services), onError, signal: stop.signal });
    } finally {
      await troupe.close();
    }
  } finally {
    dispose();
  }
}

/** Ends in the ordinary way, but with a code that says that it should not have. */
function endDeaf(): void {
  process.stderr.write('deaf: wakes are waiting and none comes here; ending, to be started anew\n');
  process.exitCode = AT_FAULT;
  process.kill(process.pid, 'SIGTERM');
}

export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

export function agentNames({ agents }: TroupeInput): string {
  return agents.map(({ id }) => `@${id}`).join(' ');
}

/** No demo company here: a file that was forgotten must not be answered by strangers. */
async function requireAgents(file: string | undefined): Promise<FoundAgents> {
  const found = await findAgents(file);
  if (found) return found;
  const message = 'there is no agents file here: write agents.ts, .js or .json, or name one';
  throw new TroupeError('config_invalid', message);
}

function shown(services: ServiceUrls): ServiceUrls {
  return { ...services, mongodb: shownUrl(services.mongodb), redis: shownUrl(services.redis) };
}
