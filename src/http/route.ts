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

/** What the handlers of a door use of the process. */
export interface DoorServer {
  /** Source of time. */
  clock: Clock;
  /** Aborted when the process is about to end. */
  signal?: AbortSignal | undefined;
  /** Where clients reach the app, for what is signed. Throws `Refusal` for a host that nobody has named. */
  addressOf: (context: Context) => string;
  /** Version of Troupe, for clients. */
  version: string;
  /** Receives errors that clients are not told. */
  onError: (error: unknown) => void;
}

/** What our own handlers use beside it. */
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
  /** The request as the framework has it. */
  context: Context;
  /** Parameters of the path. */
  params: Record<ParamName<P>, string>;
  /** Parameters of the query. */
  query: Q;
  /** Reads and checks the body. Throws `event_invalid`, `event_too_large`, `Refusal`. */
  body: () => Promise<B>;
  /** Who asks. */
  caller: Caller;
  /** The troupe, narrowed to what the caller may see and do. */
  troupe: Troupe;
}

/** An answer of another status or media type than the usual one. Without both it has no body. */
interface OtherAnswer {
  /** Its media type, if it is not JSON. */
  type?: string;
  /** Schema of a JSON answer. */
  schema?: z.ZodType;
}

export interface RouteSpec<M extends Method, P extends string, Q, B, A> {
  /** Method of the request. */
  method: M;
  /** Path with parameters as `{name}`; the segment before each names what it is an id of. */
  path: P;
  /** Scopes, one of which the caller needs. `[]`: any known caller. `public`: answered before the guard. */
  scopes: readonly Scope[] | 'public';
  /** Parameters of the path that the API has no schema for. */
  params?: Partial<Record<ParamName<P>, PathParameter>>;
  /** Pages of the server's own origin may write without its token: clients of a protocol name that origin and know no token. */
  needsNoToken?: true;
  /** Operation id; null keeps the route out of the document. */
  id: string | null;
  /** What it does, for the document. */
  summary: string;
  /** Schema of the query. */
  query?: z.ZodObject & z.ZodType<Q>;
  /** Schema of the body. */
  body?: z.ZodType<B>;
  /** Most bytes of the body, if it is to be smaller than others. */
  bodyBytes?: number;
  /** Media type of a body that is a file; its handler reads it. */
  bodyType?: string;
  /** A body that is accepted where `main` is a conversation and `writer` an agent, as in the examples of the path. */
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
  /** Names of headers that an answer of success may have. */
  headers?: readonly string[];
  /** JSON pointers to ids in the answer, by the path noun that they fit, and to the tenant that they belong to. */
  gives?: Partial<Record<PathNoun | 'tenant', string>>;
  /** A parameter may be empty, so that the handler can say which one is missing. */
  allowsEmptyParams?: true;
  /** Returns the JSON answer, or a `Response` if status, headers or media type differ. */
  handle(request: RouteRequest<P, Q, B>, server: DoorServer): A | Response | Promise<A | Response>;
}

/** A declared route, whatever its types. */
export type Route = Omit<RouteSpec<Method, string, unknown, unknown, unknown>, 'handle'> & {
  // A method, whose parameters TypeScript compares both ways: each handler takes the request of its own route.
  handle(request: never, server: DoorServer): unknown;
};

/** The one declaration of a route. Guard, OpenAPI document and client derive from it. */
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

/** `GET /api/turns/{turn}`: the name of a route in tables and in the client. */
export function routeName({ method, path }: Pick<Route, 'method' | 'path'>): string {
  return `${method} ${path}`;
}

/** Converts a Hono path to the form of the document: `/api/turns/:turn{[^/]*}` is `/api/turns/{turn}`. `words` is no parameter. */
export function describedPath(path: string): string {
  return path
    .replace(/(?<=\/):words\{([^{}]*)\}/g, '$1')
    .replace(/(?<=\/):(\w+)(?:\{\[\^\/\][*+]([^{}]*)\})?/g, '{$1}$2');
}

/** Hono takes what follows any colon for a parameter, so a part with one is a parameter with an expression. */
function honoPart(part: string, { allowsEmptyParams }: Pick<Route, 'allowsEmptyParams'>): string {
  const [, name, rest = ''] = /^\{(\w+)\}(.*)$/.exec(part) ?? [];
  if (name === undefined) return part.includes(':') ? `:words{${part}}` : part;
  if (rest !== '') return `:${name}{[^/]+${rest}}`;
  return allowsEmptyParams ? `:${name}{[^/]*}` : `:${name}`;
}

/** Registers routes, in their order. */
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

/** V8 keeps what an object literal with accessors refers to until the next full garbage collection: a class, it does not. */
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

  /** A field, since handlers take it apart from the request. */
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

/** Makes a door of routes: of a protocol that is not ours, in a package of its own. `doors` of a definition opens it. */
export function defineDoor(door: Omit<Door, 'routes'> & { readonly routes: readonly Route[] }): Door {
  return door;
}

/** Doors are made with `defineDoor` alone. */
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

/** The door of `@troupe/doors` to which a path belongs; null: it is of none. */
export function doorOf(path: string): DoorName | null {
  return DOORS.find((name) => PATHS[name].test(path)) ?? null;
}
