import { Hono } from 'hono';
import { type Clock, systemClock } from '../clock.ts';
import type { Troupe } from '../troupe.ts';
import { guard, type GuardOptions } from './guard.ts';
import type { ProcessMetrics } from './metrics.ts';
import { errorResponse, Refusal } from './refusal.ts';
import { addConversationRoutes } from './routes/conversations.ts';
import { addProbeRoutes } from './routes/probes.ts';
import { addMetricsRoute, addStatusRoutes } from './routes/status.ts';
import { addStreamRoutes } from './routes/stream.ts';
import { addTransferRoutes } from './routes/transfer.ts';
import { addTurnRoutes } from './routes/turns.ts';

export interface AppOptions extends GuardOptions {
  clock?: Clock | undefined;
  /** The process is about to end: no longer ready, and open event streams end, which would keep a closing server waiting. */
  signal?: AbortSignal | undefined;
  /** Shown at /metrics. */
  metrics?: ProcessMetrics | undefined;
  /** What answers with 500. Default: console.error. */
  onError?: ((error: unknown) => void) | undefined;
}

/** The HTTP API of a troupe. Clients are trusted with everything in it; `guard` decides who is one. */
export function createApp(troupe: Troupe, options: AppOptions = {}): Hono {
  const { clock = systemClock, signal, metrics, onError = reportError, ...guardOptions } = options;
  const app = new Hono();
  addProbeRoutes(app, troupe, { clock, signal, trust: guardOptions });
  app.use(guard(guardOptions));
  addConversationRoutes(app, troupe);
  addTurnRoutes(app, troupe);
  addStreamRoutes(app, troupe, { clock, signal });
  addTransferRoutes(app, troupe);
  addStatusRoutes(app, troupe);
  addMetricsRoute(app, troupe, metrics);
  app.notFound((context) => {
    const { method, path } = context.req;
    const refusal = new Refusal(404, 'route_unknown', `there is no ${method} ${path}; see /api/openapi.json`);
    return errorResponse(context, refusal, onError);
  });
  app.onError((error, context) => errorResponse(context, error, onError));
  return app;
}

function reportError(error: unknown): void {
  console.error('troupe: a request failed:', error);
}
