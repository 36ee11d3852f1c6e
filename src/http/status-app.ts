import { Hono } from 'hono';
import { Traffic } from '../access/index.ts';
import { type Clock, systemClock } from '../clock.ts';
import type { Troupe } from '../troupe.ts';
import { createGate } from './access/gate.ts';
import { guard, type GuardOptions } from './guard.ts';
import type { ProcessMetrics } from './metrics.ts';
import { errorResponse, Refusal } from './refusal.ts';
import { addProbeRoutes } from './routes/probes.ts';
import { addMetricsRoute } from './routes/status.ts';

export interface StatusAppOptions extends GuardOptions {
  metrics: ProcessMetrics;
  signal: AbortSignal;
  clock?: Clock | undefined;
  onError: (error: unknown) => void;
}

/** What a process without an API says about itself: health, readiness, metrics. */
export function createStatusApp(troupe: Troupe, options: StatusAppOptions): Hono {
  const { metrics, signal, clock = systemClock, onError, ...trust } = options;
  const app = new Hono();
  const gate = createGate(trust, clock);
  addProbeRoutes(app, troupe, { clock, signal, gate, trust });
  app.use(guard(troupe, gate, trust, new Traffic(trust.traffic ?? {}, clock)));
  addMetricsRoute(app, troupe, metrics);
  app.notFound((context) => {
    const text = 'this is a worker: it has /healthz, /readyz and /metrics; the API is with "troupe serve"';
    return errorResponse(context, new Refusal(404, 'route_unknown', text), onError);
  });
  app.onError((error, context) => errorResponse(context, error, onError));
  return app;
}
