import { once } from 'node:events';
import { systemClock, type Clock } from '../../base/clock.ts';
import type { HttpServer } from '../../http/api/index.ts';
import { count, paint, print, printJson, table } from '../render/output.ts';
import {
  serviceRows,
  type UrlOptions,
  readServiceUrls,
  type ServiceUrls,
  shownServices,
  type OperatorFlags,
  readOperators,
  readTls,
  type TlsFlags,
} from '../process/operator-flags.ts';
import { version } from '../process/version.ts';
import { hostname } from 'node:os';
import { DEFAULT_LIMITS } from '../../actors/actor/engine-deps.ts';
import type { TroupeInput } from '../../library/config/agents-file.ts';
import { TroupeError } from '../../base/errors.ts';
import type { TroupeOptions } from '../../library/runtime/create-troupe.ts';
import type { Troupe } from '../../library/troupe.ts';
import { findAgents, type FoundAgents } from '../process/find-agents.ts';
import { onInterrupt } from '../process/terminal.ts';

interface ServeOptions extends UrlOptions, TlsFlags {
  port: number;
  host: string;
  readOnly?: boolean;
  json?: boolean;
}

/** Time during which requests are still answered after `/readyz` begins to refuse, ms, so that load balancers can switch. */
const DRAIN_MS = 2_000;

/** The API of the distributed mode. It takes no turns. */
export async function serve(file: string | undefined, options: ServeOptions): Promise<void> {
  const { host, port, readOnly, json } = options;
  const tls = readTls(options);
  const [{ createApp, serveHttp }, { createMetrics }, { readToken }, credentials] = await Promise.all([
    import('../../http/api/index.ts'),
    import('../../http/metrics.ts'),
    import('../../http/server-token.ts'),
    import('../process/credentials.ts'),
  ]);
  const { callerOptions, requireCredentials } = credentials;
  const token = readToken(process.env);
  const metrics = createMetrics({ version: version() });
  await runProcess(file, options, { work: false, metrics }, async (parts) => {
    const { troupe, signal, found, services, onError } = parts;
    const { access } = found.definition;
    // Required on loopback too, because a proxy there may forward requests from anywhere.
    const why = 'serve answers no request without a credential';
    await requireCredentials(troupe, { token, access, now: systemClock.now(), why });
    const app = createApp(troupe, {
      signal,
      ...callerOptions(troupe, token, access),
      keyless: 'refused',
      metrics,
      onError,
      readOnly,
      version: version(),
    });
    // A load balancer expects exactly this port.
    const server = await serveHttp(app, { host, port, tries: 1, tls });
    if (json) printJson({ url: server.url, page: `${server.url}/`, ...services });
    else showBanner(server, parts);
    if (!signal.aborted) await once(signal, 'abort');
    await systemClock.sleep(DRAIN_MS);
    await server.close();
  });
}

function showBanner({ url }: HttpServer, { found, services }: ProcessParts): void {
  const rows = [
    ['Page', paint('cyan', `${url}/`)],
    ['API', `${url}/api/openapi.json`],
    ...serviceRows(services),
    ['Agents', `${agentNames(found.definition)} (${found.file})`],
  ];
  print(paint('bold', `troupe: API for ${count(found.definition.agents.length, 'agent')} ready`));
  print(table(rows.map(([name = '', value = '']) => [`  ${paint('dim', name)}`, value])));
  print(
    paint(
      'dim',
      'It takes no turns: start "troupe worker" for that. Ctrl-C stops it; press it twice to stop at once.',
    ),
  );
}

interface WorkerOptions extends UrlOptions {
  concurrency: number;
  statusHost: string;
  /** Port of health and metrics. 0: none. */
  statusPort: number;
  /** In ms. Default: half a lease. 0: stalls are not detected. */
  maxLag?: number;
  record?: string;
  replay?: string[];
  json?: boolean;
}

/** Takes turns. Any number of workers run side by side; a free one takes the next wake. */
export async function worker(file: string | undefined, options: WorkerOptions): Promise<void> {
  const { concurrency, statusHost, statusPort, record, replay, json } = options;
  const status = statusPort === 0 ? undefined : { host: statusHost, port: statusPort };
  const given = { concurrency, status, onDeaf: endDeaf, record, replay };
  await runProcess(file, options, given, async (parts) => {
    const { troupe, signal, found, services } = parts;
    const maxLagMs = options.maxLag ?? (found.definition.limits?.leaseMs ?? DEFAULT_LIMITS.leaseMs) / 2;
    const unwatch = watchLag({ clock: systemClock, maxLagMs, onStall: (lag) => endStalled(lag, maxLagMs) });
    const name = `${hostname()}:${process.pid}`;
    if (json) printJson({ worker: name, concurrency, status: troupe.statusUrl, ...services });
    else showWorkerBanner(name, parts, concurrency);
    if (!signal.aborted) await once(signal, 'abort');
    await troupe.close();
    unwatch();
  });
}

function endStalled(lagMs: number, maxLagMs: number): void {
  process.stderr.write(
    `stalled: nothing ran for ${lagMs} ms, and --max-lag is ${maxLagMs} ms. Other processes take over its work; look for a tool that computes without pause, or for too little CPU\n`,
  );
  process.exit(AT_FAULT);
}

function showWorkerBanner(name: string, { troupe, found, services }: ProcessParts, turns: number): void {
  const { statusUrl } = troupe;
  const rows = [
    ['Turns', `${turns} at once`],
    ...serviceRows(services),
    ['Status', statusUrl ? `${statusUrl}/readyz, /healthz, /metrics` : 'off (see --status-port)'],
    ['Agents', `${agentNames(found.definition)} (${found.file})`],
  ];
  print(paint('bold', `troupe: worker ${name} for ${count(found.definition.agents.length, 'agent')} ready`));
  print(table(rows.map(([label = '', value = '']) => [`  ${paint('dim', label)}`, value])));
  print(paint('dim', 'Ctrl-C finishes the current steps and stops; press it twice to stop at once.'));
}

interface LagOptions {
  clock: Pick<Clock, 'monotonic' | 'sleep'>;
  /** Longest tolerated stall in ms; 0 tolerates any. */
  maxLagMs: number;
  onStall: (lagMs: number) => void;
}

const BEAT_MS = 250;

/**
 * Detects that this process stalled: a tool that computes without a pause, a long garbage collection, a suspended machine.
 * During a stall no lease is renewed, so its actors may run elsewhere. A process that never runs again detects nothing, but
 * `/healthz` then does not answer. Returns a function that ends the detection.
 */
export function watchLag({ clock, maxLagMs, onStall }: LagOptions): () => void {
  const stopped = new AbortController();
  const beat = Math.min(BEAT_MS, Math.max(1, maxLagMs / 4));

  async function watch(): Promise<void> {
    while (!stopped.signal.aborted) {
      const before = clock.monotonic();
      await clock.sleep(beat, stopped.signal);
      const lag = clock.monotonic() - before - beat;
      if (lag > maxLagMs && !stopped.signal.aborted) onStall(Math.round(lag));
    }
  }

  if (maxLagMs > 0) void watch();
  return () => stopped.abort();
}

/** Parts that `serve` and `worker` share: services, agents and shutdown. */
interface ProcessParts {
  troupe: Troupe;
  found: FoundAgents;
  /** URLs without credentials, for display. */
  services: ServiceUrls;
  /** Receives errors of requests that are answered with 500. */
  onError: (error: unknown) => void;
  /** Aborts with the first SIGTERM or Ctrl-C. */
  signal: AbortSignal;
}

/** EX_SOFTWARE of sysexits: the process itself failed, and a supervisor may restart it. */
const AT_FAULT = 70;
/** Longest time from the signal to the exit, ms, even if something hangs: orchestrators kill after 10 s. */
const LAST_RESORT_MS = 9_000;

/** Opens the distributed mode, runs `body` and closes everything. Throws what `createTroupe` throws. */
async function runProcess(
  file: string | undefined,
  options: UrlOptions & OperatorFlags,
  given: TroupeOptions,
  body: (parts: ProcessParts) => Promise<void>,
): Promise<void> {
  const services = readServiceUrls(options, process.env);
  const found = await requireAgents(file);
  const { onError, ...operators } = await readOperators(options, process.env, 'info');
  const { createTroupe } = await import('../../library/runtime/create-troupe.ts');
  const stop = new AbortController();
  const dispose = onInterrupt(() => stop.abort(), { withinMs: LAST_RESORT_MS });
  try {
    const troupe = await createTroupe(found.definition, { ...services, ...operators, ...given });
    try {
      await body({ troupe, found, services: shownServices(services), onError, signal: stop.signal });
    } finally {
      await troupe.close();
    }
  } finally {
    dispose();
  }
}

/** Shuts down as usual, but with an exit code that reports a fault. */
function endDeaf(): void {
  process.stderr.write(
    'deaf: wakes are waiting but none arrives here; exiting so that a supervisor can restart this process\n',
  );
  process.exitCode = AT_FAULT;
  process.kill(process.pid, 'SIGTERM');
}

function agentNames({ agents }: TroupeInput): string {
  return agents.map(({ id }) => `@${id}`).join(' ');
}

/** Never falls back to the demo company: a missing agents file must not put other agents into production. */
async function requireAgents(file: string | undefined): Promise<FoundAgents> {
  const found = await findAgents(file);
  if (found) return found;
  const message = 'no agents file found: write agents.ts, .js, .mjs, .json or .yaml, or name one';
  throw new TroupeError('config_invalid', message);
}
