import { type AccessInput, trafficTimes } from '../access/index.ts';
import { createStatusApp, type HttpServer, serveHttp } from '../../http/api/index.ts';
import { createMetrics, type ProcessMetrics } from '../../http/metrics.ts';
import { requireToken } from '../../http/server-token.ts';
import type { Metrics } from '../../events/metrics.ts';
import type { Troupe } from '../troupe.ts';
import { releaseOf } from './open-engine.ts';

/** Where health, readiness and metrics of a process are served. */
export interface StatusOptions {
  /** Port to listen at, or the first free one after it; 0: any. Default 4601. */
  port?: number;
  /** Address to listen at. Default `127.0.0.1`; another one needs TROUPE_TOKEN, which readers of metrics then send. */
  host?: string;
}

/** Serves /healthz, /readyz and /metrics. */
export interface StatusPort {
  /** Counts what /metrics shows. */
  readonly metrics: Metrics;
  /** Its address without a slash at the end; null before `listen`. */
  readonly url: string | null;
  /** Throws `config_invalid` if no port is free. */
  listen(troupe: Troupe, process: Process): Promise<void>;
  close(): Promise<void>;
}

interface Process {
  /** Aborts when the process begins to stop: it is no longer ready. */
  signal: AbortSignal;
  /** Multiplies the rate limits of callers with a credential. */
  limits: AccessInput['limits'];
  onError: (error: unknown) => void;
}

const PORT = 4_601;

/** Throws `config_invalid` for an address that other machines reach, without a token. */
export function createStatusPort(
  { port = PORT, host = '127.0.0.1' }: StatusOptions,
  { env, metrics }: { env: Record<string, string | undefined>; metrics: Metrics | undefined },
): StatusPort {
  const token = requireToken(host, env);
  const own = metrics ?? createMetrics({ version: releaseOf() });
  let server: HttpServer | null = null;
  return {
    metrics: own,
    get url() {
      return server?.url ?? null;
    },
    async listen(troupe, { signal, limits, onError }) {
      const authenticate = (credential: string) => troupe.authenticate(credential);
      const shown = isReadable(own) ? own : undefined;
      const trust = { token, authenticate, traffic: trafficTimes(limits) };
      server = await serveHttp(createStatusApp(troupe, { ...trust, metrics: shown, signal, onError }), {
        host,
        port,
      });
    },
    async close() {
      await server?.close();
    },
  };
}

/** Whether these metrics can be shown. Those of an application may go elsewhere and have no text. */
function isReadable(metrics: Metrics): metrics is ProcessMetrics {
  return 'text' in metrics && 'contentType' in metrics;
}
