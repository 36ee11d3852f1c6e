import * as z from 'zod';
import { randomBytes } from 'node:crypto';
import { type Context, Hono, type MiddlewareHandler, type Next } from 'hono';
import { Traffic, Origins, PublicUrl } from '../../library/access/index.ts';
import { type Clock, systemClock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import type { Door } from '../../library/integrations/door.ts';
import type { Troupe } from '../../library/troupe.ts';
import { doorOf, addRoutes, type Route, type RouteServer } from '../route.ts';
import {
  createGate,
  isKeyless,
  guard,
  type GuardOptions,
  trustedCaller,
  hostNameOf,
  isKnownHost,
} from '../guard.ts';
import { createProjectionCaches } from '../projection-caches.ts';
import { createInboxKeepers } from '../inbox.ts';
import { scanRows } from '../scan.ts';
import { type ProcessMetrics, createReadiness } from '../metrics.ts';
import { type DocumentOptions, writeDocument } from './openapi.ts';
import { placeInHono, mountPath, addPageRoutes, type PageOptions } from '../page/page.ts';
import { countedRefusal, errorResponse, methodRefused, Refusal } from '../refusal.ts';
import { type RouteTable, routeTable } from '../routes/index.ts';
import { metricsRoute, probeRoutes } from '../routes/status.ts';
import { cors as honoCors } from 'hono/cors';
import { parseGiven } from '../../events/index.ts';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { codingsFor } from '../codings.ts';

/** Options of `createApp`. */
export interface AppOptions extends GuardOptions, PageOptions {
  /** Doors of this app in addition to those of the troupe; they get no integrations. Default: none. */
  doors?: readonly Door[] | undefined;
  /** Path at which the app is mounted, for servers that pass the whole path on: `/inspector`. Default: the root. */
  basePath?: string | undefined;
  /** Source of time. Default: the system clock. */
  clock?: Clock | undefined;
  /** Aborted when the process is about to end: the app reports that it is not ready, and open event streams end. */
  signal?: AbortSignal | undefined;
  /** Shown at /metrics. */
  metrics?: ProcessMetrics | undefined;
  /** Receives errors that are answered with 500. Default: console.error. */
  onError?: ((error: unknown) => void) | undefined;
}

/**
 * The HTTP API of a troupe and its page, at any path: `app.route('/inspector', createApp(troupe))`. The guard decides who is
 * admitted, and what each caller may see and do. Without `token` and `authenticate` everybody may do everything.
 */
export function createApp(troupe: Troupe, options: AppOptions = {}): Hono {
  const { basePath, clock = systemClock, signal, metrics, onError = reportError, ...rest } = options;
  const { web, version, cors, doors = [], ...given } = rest;
  refuseIntegrations(doors);
  const table = routeTable([...troupe.doors, ...doors]);
  const trust: GuardOptions = { ...given, writeToken: given.writeToken ?? newWriteToken() };
  if (cors) trust.cors = parseGiven(z.object({ cors: Origins }), { cors }, 'cors').cors;
  if (given.publicUrl !== undefined) trust.publicUrl = readPublicUrl(given.publicUrl);
  const app = new Hono();
  if (trust.cors) app.use('/api/*', allowOrigins(trust.cors));
  app.use('/api/*', compressJson);
  addPageRoutes(app, { web, version, trust, hasSubject: (...named) => hasSubject(troupe, ...named) });
  const routes = table.routes.filter(({ scopes }) => scopes !== 'public');
  addGuarded(app, troupe, routes, { clock, signal, metrics, trust, onError, table, version: version ?? '0' });
  const notFound = (context: Context) => errorResponse(context, unknownRoute(context, table), onError);
  // Other unknown paths are left to the app that this one is mounted in.
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
  /** Shown at `/metrics`. Default: nothing. */
  metrics?: ProcessMetrics | undefined;
  /** Aborted when the process is about to end. */
  signal: AbortSignal;
  /** Source of time. Default: the system clock. */
  clock?: Clock | undefined;
  /** Receives errors whose details clients are not told. */
  onError: (error: unknown) => void;
}

/** Health, readiness and metrics of a process without an API. */
export function createStatusApp(troupe: Troupe, options: StatusAppOptions): Hono {
  const { metrics, signal, clock = systemClock, onError, ...trust } = options;
  const app = new Hono();
  const table = routeTable();
  addGuarded(app, troupe, [metricsRoute], { clock, signal, metrics, trust, onError, table, version: '0' });
  app.notFound((context) => {
    const text =
      'this is a worker: it serves only /healthz, /readyz and /metrics; start "troupe serve" for the API';
    return errorResponse(context, new Refusal(404, 'route_unknown', text), onError);
  });
  app.onError((error, context) => errorResponse(context, error, onError));
  return app;
}

/** The API in OpenAPI 3.1. */
export function openApiDocument({ doors, ...options }: DocumentOptions = {}): object {
  return writeDocument(routeTable(doors).routes, options);
}

interface ServerParts extends Pick<RouteServer, 'clock' | 'signal' | 'metrics' | 'version' | 'onError'> {
  trust: GuardOptions;
  table: RouteTable;
}

/** Adds the probes, which need no credential, and `routes`, which the guard protects. */
function addGuarded(
  app: Hono,
  root: Troupe,
  routes: readonly Route[],
  { trust, table, ...parts }: ServerParts,
): void {
  const gate = createGate(trust, parts.clock);
  const server: RouteServer = {
    ...parts,
    root,
    cacheOf: createProjectionCaches(root),
    keeperOf: createInboxKeepers(root, parts),
    readiness: createReadiness(root, parts),
    trustedCaller: (context) => trustedCaller(context, gate, trust),
    addressOf: (context) => publicAddress(context, trust),
    describe: (base) => writeDocument(table.routes, { keyless: isKeyless(trust), base }),
  };
  addRoutes(app, probeRoutes, server);
  const traffic = new Traffic(trust.traffic ?? {}, parts.clock);
  app.use(guard({ troupe: root, gate, options: trust, traffic, rules: table.rules }));
  addRoutes(app, routes, server);
}

/** A turn that a fork has copied is known by its events alone. */
async function hasSubject(troupe: Troupe, conversation: string, turn: string | null): Promise<boolean> {
  try {
    await troupe.events(conversation, { after: 0, limit: 1 });
    if (turn === null || (await isTraced(troupe, turn))) return true;
    const { rows } = await scanRows(troupe, conversation, { turn, limit: 1 });
    return rows.length > 0;
  } catch (error) {
    // A page whose store is away opens and says so.
    return !(error instanceof TroupeError && /^(conversation_unknown|event_invalid)$/.test(error.code));
  }
}

async function isTraced(troupe: Troupe, turn: string): Promise<boolean> {
  try {
    await troupe.trace(turn);
    return true;
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'turn_unknown') return false;
    throw error;
  }
}

function refuseIntegrations(doors: readonly Door[]): void {
  const door = doors.find(({ integration }) => integration !== undefined);
  if (!door) return;
  const message = `the door "${door.name}" works beside its routes: name it in "doors" of the definition`;
  throw new TroupeError('config_invalid', message, { door: door.name });
}

function unknownRoute(context: Context, table: RouteTable): Refusal {
  const { method, path } = context.req;
  const place = path.slice(placeInHono(context).length);
  const methods = table.methodsOf(place);
  const door = methods.length === 0 ? doorOf(place) : null;
  if (door !== null && !table.doors.includes(door)) {
    const message = `the door "${door}" is not open: name it in "doors" of the agents file, as doors: ['${door}']`;
    return new Refusal(404, 'route_unknown', message, { door });
  }
  // Hono may match paths such as `//api/agents`, which no route declares.
  if (methods.length === 0 || methods.includes(method)) {
    const message = `there is no ${method} ${path}; see /api/openapi.json`;
    return new Refusal(404, 'route_unknown', message);
  }
  return methodRefused(context, methods);
}

/** A new token for every start. A page that was loaded before must be loaded again. */
function newWriteToken(): string {
  return randomBytes(24).toString('base64url');
}

function reportError(error: unknown): void {
  console.error('troupe: a request failed:', error);
}

/** Browsers cache the answer for one hour. */
const MAX_AGE_S = 3_600;

/** Answers preflight requests, which carry no credential, and lets pages of the listed origins read answers. */
function allowOrigins(origins: readonly string[]): MiddlewareHandler {
  const allow = honoCors({
    origin: (origin) => (origins.includes(origin) ? origin : null),
    allowMethods: ['GET', 'HEAD', 'POST', 'DELETE'],
    allowHeaders: ['authorization', 'content-type', 'if-none-match', 'last-event-id', 'x-troupe-token'],
    exposeHeaders: ['allow', 'content-disposition', 'etag', 'retry-after', 'www-authenticate'],
    maxAge: MAX_AGE_S,
  });
  return async function allowListed(context, next) {
    if (origins.includes(context.req.header('origin') ?? '')) return allow(context, next);
    await next();
    context.res.headers.append('vary', 'origin');
  };
}

/** The URL without a trailing slash. Throws `config_invalid`. */
function readPublicUrl(text: string): string {
  const { publicUrl } = parseGiven(z.object({ publicUrl: PublicUrl }), { publicUrl: text }, 'the options');
  return publicUrl.replace(/\/$/, '');
}

/**
 * Where clients reach the app, without a trailing slash. A client can send any `Host`, so a signed address uses the setting,
 * or a host that is allowed. Throws `host_refused`.
 */
function publicAddress(context: Context, options: GuardOptions): string {
  const { req } = context;
  if (options.publicUrl !== undefined) return options.publicUrl;
  const host = hostNameOf(req);
  if (isKnownHost(host, options)) return `${originOf(req)}${mountPath(context)}`;
  const message = `cards are not signed for the host ${host}: set access.publicUrl to the address that clients use`;
  throw new Refusal(403, 'host_refused', message, { host });
}

/** The origin, with the scheme that a TLS-terminating proxy reports. */
function originOf(req: Context['req']): string {
  const { origin, protocol, host } = new URL(req.url);
  const given = req.header('x-forwarded-proto');
  return given === 'https' && protocol === 'http:' ? `https://${host}` : origin;
}

/** A smaller answer fits into one packet even without compression. */
const MIN_BYTES = 1_024;
/** A fifth to a half smaller than the lowest level, for 1 ms of CPU per 100 kB. Level 6 saves little more. */
const BROTLI_QUALITY = 5;
const GZIP_LEVEL = 1;

type Compress = (bytes: Uint8Array) => Promise<Uint8Array<ArrayBuffer>>;

const brotli = promisify(brotliCompress);
const gzipped = promisify(gzip);

/** In order of preference: the smaller result first. */
const COMPRESSIONS: readonly [encoding: string, compress: Compress][] = [
  [
    'br',
    (bytes) =>
      brotli(bytes, {
        params: {
          [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
          [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
          [constants.BROTLI_PARAM_SIZE_HINT]: bytes.byteLength,
        },
      }),
  ],
  ['gzip', (bytes) => gzipped(bytes, { level: GZIP_LEVEL })],
];

/**
 * Compresses JSON answers for clients that accept it. Streams and downloads are passed on unchanged. So is an answer with
 * `no-store`, which holds a secret: the length of a compressed answer would reveal whether text beside the secret resembles it.
 */
async function compressJson(context: Context, next: Next): Promise<void> {
  await next();
  const answer = context.res;
  const { status, headers } = answer;
  if (status !== 304 && !isCompressible(headers)) return;
  headers.append('vary', 'accept-encoding');
  const accepted = codingsFor(context);
  const [encoding, compress] = COMPRESSIONS.find(([name]) => accepted.has(name)) ?? [];
  if (!encoding || !compress || !answer.body || context.req.method === 'HEAD') return;
  const plain = new Uint8Array(await answer.arrayBuffer());
  const isSmall = plain.byteLength < MIN_BYTES;
  const bytes = isSmall ? plain : await compress(plain);
  context.res = new Response(bytes, { status, headers });
  if (isSmall) return;
  context.res.headers.set('content-encoding', encoding);
  context.res.headers.delete('content-length');
}

function isCompressible(headers: Headers): boolean {
  return (
    headers.get('content-type')?.startsWith('application/json') === true &&
    headers.get('cache-control')?.includes('no-store') !== true &&
    !headers.has('content-encoding')
  );
}
