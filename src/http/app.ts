import { randomBytes } from 'node:crypto';
import { type Context, Hono } from 'hono';
import { Traffic } from '../access/index.ts';
import { type Clock, systemClock } from '../clock.ts';
import type { Troupe } from '../troupe.ts';
import { createGate, isKeyless } from './access/gate.ts';
import { methodsOf } from './access/route-scopes.ts';
import { createProjectionBooks } from './access/projection-books.ts';
import { guard, type GuardOptions } from './guard.ts';
import type { ProcessMetrics } from './metrics.ts';
import { addPageRoutes, type PageOptions } from './page.ts';
import { countedRefusal, errorResponse, Refusal } from './refusal.ts';
import { addChartRoutes } from './routes/charts.ts';
import { addConversationRoutes } from './routes/conversations.ts';
import { addInspectorRoutes } from './routes/inspector.ts';
import { addKeyRoutes } from './routes/keys.ts';
import { addProbeRoutes } from './routes/probes.ts';
import { addMetricsRoute, addStatusRoutes } from './routes/status.ts';
import { addStreamRoutes } from './routes/stream.ts';
import { addTransferRoutes } from './routes/transfer.ts';
import { addTurnRoutes } from './routes/turns.ts';
import { addWebhookRoutes } from './routes/webhooks.ts';

export interface AppOptions extends GuardOptions, PageOptions {
  clock?: Clock | undefined;
  /** The process is about to end: no longer ready, and open event streams end, which would keep a closing server waiting. */
  signal?: AbortSignal | undefined;
  /** Shown at /metrics. */
  metrics?: ProcessMetrics | undefined;
  /** What answers with 500. Default: console.error. */
  onError?: ((error: unknown) => void) | undefined;
}

/**
 * The HTTP API of a troupe and its page, at any path: `app.route('/inspector', createApp(troupe))`. Who is let in,
 * and what they may see and do, `guard` decides; without `token` and `authenticate` that is everybody, and everything.
 */
export function createApp(troupe: Troupe, options: AppOptions = {}): Hono {
  const { clock = systemClock, signal, metrics, onError = reportError, web, version, ...given } = options;
  const trust: GuardOptions = { ...given, writeToken: given.writeToken ?? newWriteToken() };
  const app = new Hono();
  const gate = createGate(trust, clock);
  addProbeRoutes(app, troupe, { clock, signal, gate, trust });
  addPageRoutes(app, { web, version, trust });
  app.use(guard(troupe, gate, trust, new Traffic(trust.traffic ?? {}, clock)));
  addConversationRoutes(app);
  addTurnRoutes(app);
  addStreamRoutes(app, { clock, signal });
  const bookOf = createProjectionBooks(troupe);
  addInspectorRoutes(app, { clock, bookOf });
  addTransferRoutes(app, bookOf);
  addStatusRoutes(app, troupe, { keyless: isKeyless(trust) });
  addKeyRoutes(app, troupe);
  addWebhookRoutes(app, troupe);
  addChartRoutes(app);
  addMetricsRoute(app, troupe, metrics);
  function notFound(context: Context): Response {
    const { method, path } = context.req;
    const methods = methodsOf(path);
    // A path that only looks like one of ours, such as `//api/agents`.
    if (methods.length === 0 || methods.includes(method)) {
      const message = `there is no ${method} ${path}; see /api/openapi.json`;
      return errorResponse(context, new Refusal(404, 'route_unknown', message), onError);
    }
    const allow = methods.join(', ');
    context.header('allow', allow);
    const message = `${path} answers to ${allow}, not to ${method}; see /api/openapi.json`;
    return errorResponse(context, new Refusal(405, 'method_refused', message, { methods }), onError);
  }
  // An app that this one is mounted in has a `notFound` of its own, which counts.
  app.all('/api/*', notFound);
  app.notFound(notFound);
  app.onError((error, context) => {
    const code = countedRefusal(error);
    if (code !== null) metrics?.count('requests_refused', { code });
    return errorResponse(context, error, onError);
  });
  return app;
}

/** For this start: a page that was loaded before it is loaded again. */
function newWriteToken(): string {
  return randomBytes(24).toString('base64url');
}

function reportError(error: unknown): void {
  console.error('troupe: a request failed:', error);
}
