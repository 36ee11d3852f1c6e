import { randomBytes } from 'node:crypto';
import { type Context, Hono } from 'hono';
import { Traffic } from '../library/access/index.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import type { Troupe } from '../library/troupe.ts';
import { createGate, isKeyless } from './access/gate.ts';
import { createProjectionBooks } from './access/projection-books.ts';
import { compressJson } from './compress-json.ts';
import { allowOrigins, readCors } from './cors.ts';
import { createInboxKeepers } from './inbox.ts';
import { guard, type GuardOptions, trustedCaller } from './guard.ts';
import type { ProcessMetrics } from './metrics.ts';
import { type DocumentOptions, writeDocument } from './openapi.ts';
import { placeInHono } from './page/mount-path.ts';
import { publicAddress, readPublicUrl } from './public-address.ts';
import { addPageRoutes, type PageOptions } from './page/page.ts';
import { createReadiness } from './readiness.ts';
import { countedRefusal, errorResponse, methodRefused, Refusal } from './refusal.ts';
import { addRoutes, type Route, type RouteServer } from './route.ts';
import { methodsOf, ROUTE_SCOPES, ROUTES } from './routes/index.ts';
import { metricsRoute, probeRoutes } from './routes/status.ts';

/** Options of `createApp`. */
export interface AppOptions extends GuardOptions, PageOptions {
  /** Path below which the app answers, for servers that pass the whole path on: `/inspector`. Default: the root. */
  basePath?: string | undefined;
  /** Source of time. Default: the clock of the system. */
  clock?: Clock | undefined;
  /** Aborted when the process is about to end: it is no longer ready, and open event streams end. */
  signal?: AbortSignal | undefined;
  /** Shown at /metrics. */
  metrics?: ProcessMetrics | undefined;
  /** Receives errors that are answered with 500. Default: console.error. */
  onError?: ((error: unknown) => void) | undefined;
}

/**
 * The HTTP API of a troupe and its page, at any path: `app.route('/inspector', createApp(troupe))`. `guard` decides who
 * is admitted, and what they may see and do. Without `token` and `authenticate` everybody may do everything.
 */
export function createApp(troupe: Troupe, options: AppOptions = {}): Hono {
  const { basePath, clock = systemClock, signal, metrics, onError = reportError, ...rest } = options;
  const { web, version, cors, ...given } = rest;
  const trust: GuardOptions = { ...given, writeToken: given.writeToken ?? newWriteToken() };
  if (cors) trust.cors = readCors(cors);
  if (given.publicUrl !== undefined) trust.publicUrl = readPublicUrl(given.publicUrl);
  const app = new Hono();
  if (trust.cors) app.use('/api/*', allowOrigins(trust.cors));
  app.use('/api/*', compressJson);
  addPageRoutes(app, { web, version, trust });
  const routes = ROUTES.filter(({ scopes }) => scopes !== 'public');
  addGuarded(app, troupe, routes, { clock, signal, metrics, trust, onError, version: version ?? '0' });
  const notFound = (context: Context) => errorResponse(context, unknownRoute(context), onError);
  // An app that this one is mounted in answers unknown paths itself, except those below /api.
  app.all('/api/*', notFound);
  app.notFound(notFound);
  app.onError((error, context) => {
    const code = countedRefusal(error);
    if (code !== null) metrics?.count('requests_refused', { code });
    return errorResponse(context, error, onError);
  });
  return basePath === undefined ? app : new Hono().route(basePath, app).notFound(notFound);
}

interface StatusAppOptions extends GuardOptions {
  /** What `/metrics` shows. */
  metrics: ProcessMetrics;
  /** Aborted when the process is about to end. */
  signal: AbortSignal;
  /** Source of time. Default: that of the system. */
  clock?: Clock | undefined;
  /** Receives errors that clients are not told. */
  onError: (error: unknown) => void;
}

/** Health, readiness and metrics of a process without an API. */
export function createStatusApp(troupe: Troupe, options: StatusAppOptions): Hono {
  const { metrics, signal, clock = systemClock, onError, ...trust } = options;
  const app = new Hono();
  addGuarded(app, troupe, [metricsRoute], { clock, signal, metrics, trust, onError, version: '0' });
  app.notFound((context) => {
    const text =
      'this is a worker: it serves only /healthz, /readyz and /metrics; start "troupe serve" for the API';
    return errorResponse(context, new Refusal(404, 'route_unknown', text), onError);
  });
  app.onError((error, context) => errorResponse(context, error, onError));
  return app;
}

/** The API in OpenAPI 3.1. */
export function openApiDocument(options?: DocumentOptions): object {
  return writeDocument(ROUTES, options);
}

interface ServerParts extends Pick<RouteServer, 'clock' | 'signal' | 'metrics' | 'version' | 'onError'> {
  trust: GuardOptions;
}

/** Adds the probes, which need no credential, and `routes` behind the guard. */
function addGuarded(
  app: Hono,
  root: Troupe,
  routes: readonly Route[],
  { trust, ...parts }: ServerParts,
): void {
  const gate = createGate(trust, parts.clock);
  const server: RouteServer = {
    ...parts,
    root,
    bookOf: createProjectionBooks(root),
    keeperOf: createInboxKeepers(root, parts),
    readiness: createReadiness(root, parts),
    trustedCaller: (context) => trustedCaller(context, gate, trust),
    addressOf: (context) => publicAddress(context, trust),
    describe: (base) => openApiDocument({ keyless: isKeyless(trust), base }),
  };
  addRoutes(app, probeRoutes, server);
  const traffic = new Traffic(trust.traffic ?? {}, parts.clock);
  app.use(guard({ troupe: root, gate, options: trust, traffic, scopes: ROUTE_SCOPES }));
  addRoutes(app, routes, server);
}

function unknownRoute(context: Context): Refusal {
  const { method, path } = context.req;
  const methods = methodsOf(path.slice(placeInHono(context).length));
  // Paths such as `//api/agents` look like one of ours and are not.
  if (methods.length === 0 || methods.includes(method)) {
    const message = `there is no ${method} ${path}; see /api/openapi.json`;
    return new Refusal(404, 'route_unknown', message);
  }
  return methodRefused(context, methods);
}

/** A new token for every start, so that a page from before it must be loaded again. */
function newWriteToken(): string {
  return randomBytes(24).toString('base64url');
}

function reportError(error: unknown): void {
  console.error('troupe: a request failed:', error);
}
