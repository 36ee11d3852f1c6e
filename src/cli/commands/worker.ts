import { once } from 'node:events';
import { hostname } from 'node:os';
import { DEFAULT_LIMITS } from '../../actors/actor/engine-deps.ts';
import { type Clock, systemClock } from '../../base/clock.ts';
import type { HttpServer } from '../../http/api/index.ts';
import { count, paint, print, printJson, table } from '../render/output.ts';
import { agentNames, AT_FAULT, type ProcessParts, runProcess } from '../process/run-process.ts';
import { serviceRows, type UrlOptions } from '../process/service-urls.ts';

interface WorkerOptions extends UrlOptions {
  concurrency: number;
  statusHost: string;
  /** 0: no status port. */
  statusPort: number;
  /** In ms. Default: half a lease. 0: stalls are not watched. */
  maxLag?: number;
  record?: string;
  replay?: string[];
  json?: boolean;
}

/** Takes turns. Any number of workers run side by side; a free one takes the next wake. */
export async function worker(file: string | undefined, options: WorkerOptions): Promise<void> {
  const { concurrency, statusHost, statusPort, json } = options;
  const { requireToken } = await import('../process/require-token.ts');
  const token = statusPort === 0 ? undefined : requireToken(statusHost, process.env);
  await runProcess(file, options, async (parts) => {
    const { signal, found, services } = parts;
    const server = statusPort === 0 ? null : await serveStatus(parts, options, token);
    const maxLagMs = options.maxLag ?? (found.definition.limits?.leaseMs ?? DEFAULT_LIMITS.leaseMs) / 2;
    const unwatch = watchLag({ clock: systemClock, maxLagMs, onStall: (lag) => endStalled(lag, maxLagMs) });
    const name = `${hostname()}:${process.pid}`;
    if (json) printJson({ worker: name, concurrency, status: server?.url ?? null, ...services });
    else showBanner(name, server, parts, concurrency);
    if (!signal.aborted) await once(signal, 'abort');
    await parts.troupe.close();
    // The status port stays open until the end: it reports that the process is stopping.
    await server?.close();
    unwatch();
  });
}

async function serveStatus(
  { troupe, metrics, signal, found, onError }: ProcessParts,
  { statusHost, statusPort }: WorkerOptions,
  token: string | undefined,
): Promise<HttpServer> {
  const [{ createStatusApp, serveHttp }, { callerOptions }] = await Promise.all([
    import('../../http/api/index.ts'),
    import('../process/require-token.ts'),
  ]);
  const { limits } = found.definition.access ?? {};
  const app = createStatusApp(troupe, {
    metrics,
    signal,
    ...callerOptions(troupe, token, { limits }),
    onError,
  });
  return await serveHttp(app, { host: statusHost, port: statusPort });
}

function endStalled(lagMs: number, maxLagMs: number): void {
  process.stderr.write(
    `stalled: nothing ran for ${lagMs} ms, and --max-lag is ${maxLagMs} ms. Other processes take over its work; look for a tool that computes without pause, or for too little CPU\n`,
  );
  process.exit(AT_FAULT);
}

function showBanner(
  name: string,
  server: HttpServer | null,
  { found, services }: ProcessParts,
  turns: number,
): void {
  const rows = [
    ['Turns', `${turns} at once`],
    ...serviceRows(services),
    ['Status', server ? `${server.url}/readyz, /healthz, /metrics` : 'off (see --status-port)'],
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
 * Detects that this process stalled: a tool that computes without pause, a long garbage collection, a suspended machine.
 * During a stall no lease is renewed, so its actors may run elsewhere. A process that never runs again detects nothing;
 * `/healthz` does not answer then. Returns a function that ends the watch.
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
