import type * as z from 'zod';
import type { Context, Hono } from 'hono';
import type { Principal, Scope } from '../library/access/index.ts';
import type { Clock } from '../base/clock.ts';
import type { Troupe } from '../library/troupe.ts';
import { type Caller, callerOf } from './caller.ts';
import type { ProjectionCacheOf } from './projection-caches.ts';
import type { KeeperOf } from './inbox.ts';
import type { ProcessMetrics, Readiness } from './metrics.ts';
import { readJson } from './read-json.ts';
import { parseInput, type PathNoun, type PathParameter } from './schemas.ts';
import { type Door, DOORS, type DoorName } from '../library/integrations/door.ts';

type Method = 'GET' | 'POST' | 'DELETE';
export type ErrorStatus = 400 | 401 | 403 | 404 | 409 | 413 | 415 | 429 | 500 | 502 | 503;

/** What a door's handlers need of the process. */
export interface DoorServer {
  /** Source of time. */
  clock: Clock;
  /** Aborted when the process is about to end. */
  signal?: AbortSignal | undefined;
  /** Address at which clients reach the app, for documents that are signed. Throws `Refusal` for a host that is not allowed. */
  addressOf: (context: Context) => string;
  /** Version of Troupe, for clients. */
  version: string;
  /** Receives errors whose details clients are not told. */
  onError: (error: unknown) => void;
}

/** What Troupe's own handlers need in addition. */
export interface RouteServer extends DoorServer {
  /** The troupe of the default tenant. */
  root: Troupe;
  metrics?: ProcessMetrics | undefined;
  cacheOf: ProjectionCacheOf;
  keeperOf: KeeperOf;
  readiness: () => Promise<Readiness>;
  /** The caller of a public route; null if the guard would refuse it. */
  trustedCaller: (context: Context) => Promise<Principal | null>;
  /** The OpenAPI document for clients that reach the app at `base`. */
  describe: (base: string) => object;
}

/** Parameter names of a path: `turn` and `other` for `/api/turns/{turn}/diff/{other}`. */
export type ParamName<P extends string> = P extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamName<Rest>
  : never;

export interface RouteRequest<P extends string, Q, B> {
  /** The request in the framework's form. */
  context: Context;
  /** Parameters of the path. */
  params: Record<ParamName<P>, string>;
  /** Parameters of the query. */
  query: Q;
  /** Reads and checks the body. Throws `event_invalid`, `event_too_large`, `Refusal`. */
  body: () => Promise<B>;
  /** Who makes the request. */
  caller: Caller;
  /** The troupe, limited to what the caller may see and do. */
  troupe: Troupe;
}

/** An answer whose status or media type differs from the usual. Without both fields it has no body. */
interface OtherAnswer {
  /** Its media type, if it is not JSON. */
  type?: string;
  /** Schema of a JSON answer. */
  schema?: z.ZodType;
}

export interface RouteSpec<M extends Method, P extends string, Q, B, A> {
  /** Method of the request. */
  method: M;
  /** Path with parameters as `{name}`. The segment before a parameter names the kind of its id. */
  path: P;
  /** Scopes, one of which the caller needs. `[]`: any known caller. `public`: answered before the guard. */
  scopes: readonly Scope[] | 'public';
  /** Parameters of the path for which the API has no schema. */
  params?: Partial<Record<ParamName<P>, PathParameter>>;
  /**
   * Pages of the server's own origin may write without the write token: clients of some protocols send that origin and know no
   * token.
   */
  needsNoToken?: true;
  /** Operation id; null keeps the route out of the document. */
  id: string | null;
  /** What the route does, for the document. */
  summary: string;
  /** Schema of the query. */
  query?: z.ZodObject & z.ZodType<Q>;
  /** Schema of the body. */
  body?: z.ZodType<B>;
  /** Most bytes of the body, if the usual limit is too large. */
  bodyBytes?: number;
  /** Media type of a body that is a file. The handler reads it itself. */
  bodyType?: string;
  /** A body that is accepted if `main` is a conversation and `writer` an agent, as in the path's examples. */
  example?: unknown;
  /** Status of success. Default: 200. */
  status?: 200 | 201 | 202;
  /** The JSON answer. */
  answer?: z.ZodType<A>;
  /** Media type of an answer that is not JSON. */
  answerType?: string;
  /** Other answers, by status. */
  also?: Readonly<Record<number, OtherAnswer>>;
  /** Errors in addition to those that follow from the input. */
  errors?: readonly ErrorStatus[];
  /** Names of headers that a successful answer may have. */
  headers?: readonly string[];
  /** JSON pointers to ids in the answer, by the path noun that they fit, and to the tenant that they belong to. */
  gives?: Partial<Record<PathNoun | 'tenant', string>>;
  /** A parameter may be empty, so that the handler can report which one is missing. */
  allowsEmptyParams?: true;
  /** Returns the JSON answer, or a `Response` if status, headers or media type differ. */
  handle(request: RouteRequest<P, Q, B>, server: DoorServer): A | Response | Promise<A | Response>;
}

/** A declared route of any types. */
export type Route = Omit<RouteSpec<Method, string, unknown, unknown, unknown>, 'handle'> & {
  // Declared as a method, whose parameters TypeScript compares in both directions: each handler takes the request of its own
  // route.
  handle(request: never, server: DoorServer): unknown;
};

/** Declares a route, once: guard, OpenAPI document and client derive from it. */
export function defineRoute<
  const M extends Method,
  const P extends string,
  Q extends z.ZodObject = z.ZodObject<Record<never, never>>,
  B extends z.ZodType = z.ZodUndefined,
  A extends z.ZodType = z.ZodNever,
>(
  route: Omit<RouteSpec<M, P, z.output<Q>, z.output<B>, z.output<A>>, 'query' | 'body' | 'answer'> & {
    query?: Q;
    body?: B;
    answer?: A;
  },
): typeof route {
  return route;
}

/** The name of a route in tables and in the client: `GET /api/turns/{turn}`. */
export function routeName({ method, path }: Pick<Route, 'method' | 'path'>): string {
  return `${method} ${path}`;
}

/** Converts a Hono path to the form of the document: `/api/turns/:turn{[^/]*}` becomes `/api/turns/{turn}`. */
export function describedPath(path: string): string {
  return path
    .replace(/(?<=\/):words\{([^{}]*)\}/g, '$1')
    .replace(/(?<=\/):(\w+)(?:\{\[\^\/\][*+]([^{}]*)\})?/g, '{$1}$2');
}

/** Hono reads any colon as the start of a parameter, so a segment with one is declared as a parameter with an expression. */
function honoPart(part: string, { allowsEmptyParams }: Pick<Route, 'allowsEmptyParams'>): string {
  const [, name, rest = ''] = /^\{(\w+)\}(.*)$/.exec(part) ?? [];
  if (name === undefined) return part.includes(':') ? `:words{${part}}` : part;
  if (rest !== '') return `:${name}{[^/]+${rest}}`;
  return allowsEmptyParams ? `:${name}{[^/]*}` : `:${name}`;
}

/** Registers routes in order. */
export function addRoutes(app: Hono, routes: readonly Route[], server: RouteServer): void {
  for (const route of routes) {
    const parts = route.path.split('/').map((part) => honoPart(part, route));
    const path = parts.join('/');
    app.on(route.method, path, (context) => answer(context, route, server));
  }
}

async function answer(context: Context, route: Route, server: RouteServer): Promise<Response> {
  const request = new Asked(context, route);
  const result = await route.handle(request as never, server);
  return result instanceof Response ? result : context.json(result as object, route.status ?? 200);
}

/** A class, because V8 keeps what an object literal with accessors refers to until the next full garbage collection. */
class Asked implements RouteRequest<string, unknown, unknown> {
  readonly context: Context;
  readonly params: Record<string, string>;
  readonly query: unknown;
  readonly #route: Route;

  constructor(context: Context, route: Route) {
    this.context = context;
    this.#route = route;
    this.params = context.req.param() as Record<string, string>;
    this.query = route.query ? parseInput(route.query, context.req.query(), 'the query') : {};
  }

  /** A field, because handlers take it out of the request by destructuring. */
  readonly body = async (): Promise<unknown> => {
    const { body, bodyBytes } = this.#route;
    return body && parseInput(body, await readJson(this.context, bodyBytes), 'the body');
  };

  get caller(): Caller {
    return callerOf(this.context);
  }

  get troupe(): Troupe {
    return this.caller.troupe;
  }
}

/** Makes a door from routes, for a protocol in a package of its own. `doors` of a definition opens it. */
export function defineDoor(door: Omit<Door, 'routes'> & { readonly routes: readonly Route[] }): Door {
  return door;
}

/** The cast is safe, because only `defineDoor` makes doors. */
export function routesOf({ routes }: Door): readonly Route[] {
  return routes as readonly Route[];
}

const PATHS: Readonly<Record<DoorName, RegExp>> = {
  a2a: /^\/api\/a2a(?:\/|$)/,
  'ag-ui': /^\/api\/(?:conversations\/[^/]+\/)?ag-ui$/,
  'ai-sdk': /^\/api\/conversations\/[^/]+\/chat(?:\/|$)/,
  mcp: /^\/api\/mcp$/,
  openai: /^\/api\/(?:conversations\/[^/]+\/)?v1\//,
};

/** The door of `@troupe/doors` to which a path belongs; null if there is none. */
export function doorOf(path: string): DoorName | null {
  return DOORS.find((name) => PATHS[name].test(path)) ?? null;
}
