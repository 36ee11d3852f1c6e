import { timingSafeEqual, createHash } from 'node:crypto';
import type { Context, HonoRequest, MiddlewareHandler, Next } from 'hono';
import {
  LOCAL,
  MOST_WAITING,
  type Principal,
  type Traffic,
  type TrafficLimits,
  SERVER_TOKEN,
  TRAFFIC,
} from '../library/access/index.ts';
import type { TenantId } from '../events/index.ts';
import type { Troupe } from '../library/troupe.ts';
import { beginReading, setCaller } from './caller.ts';
import { checkAny, routeOf, type Rule, type RouteRules } from './permissions.ts';
import { limitTroupe } from './limit-troupe.ts';
import { rateLimited, Refusal } from './refusal.ts';
import { onAccount } from '../base/work.ts';
import type { Clock } from '../base/clock.ts';
import { KeyedBuckets } from '../base/token-bucket.ts';

export interface GuardOptions extends GateOptions {
  /** Accepted host names in addition to the loopback ones. Requests with a credential may use any name. */
  allowedHosts?: readonly string[] | undefined;
  /**
   * Where clients reach the app, including the path of its mount: `https://agents.example/inspector`. Doors sign documents
   * that contain it.
   */
  publicUrl?: string | undefined;
  /** Origins whose pages may read and write like the page of this app. Default: none. */
  cors?: readonly string[] | undefined;
  /** Refuses all writes. */
  readOnly?: boolean | undefined;
  /** Browsers send this as `x-troupe-token` with writes that carry no credential. Unset, such writes are refused. */
  writeToken?: string | undefined;
}

const WAITING_RETRY_MS = 1_000;
const WRITE_TOKEN_HEADER = 'x-troupe-token';

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);
export const READS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** Whether a host, in the form of URLs, is this machine. */
export function isLoopback(host: string): boolean {
  return LOOPBACK.has(host) || host === '::1';
}

interface GuardParts {
  troupe: Troupe;
  gate: Gate;
  options: GuardOptions;
  traffic: Traffic;
  rules: RouteRules;
}

/**
 * Admits known callers that have the scope of the route, and gives the routes a troupe limited to the caller.
 *
 * Pages of other origins can send requests to a server on this machine. `Host` reveals such a page if its DNS name was pointed
 * at this machine; `Origin` reveals the others. Browsers never send bearer credentials by themselves.
 */
export function guard({ troupe, gate, options, traffic, rules }: GuardParts): MiddlewareHandler {
  return async function checkCaller(context, next) {
    const identified = await identify(context, gate, options).catch(refuseInTurn);
    const leave = await enter(identified.principal.tenant);
    try {
      return await admit(context, next, { ...identified, leave });
    } finally {
      leave();
    }
  };

  async function enter(tenant: TenantId | null): Promise<() => void> {
    const leave = await traffic.turnstile.enter(tenant);
    if (leave !== null) return leave;
    const message = `at most ${MOST_WAITING} requests of one tenant may wait`;
    throw rateLimited(message, MOST_WAITING, WAITING_RETRY_MS);
  }

  async function refuseInTurn(thrown: unknown): Promise<never> {
    (await enter(null))();
    throw thrown;
  }

  async function admit(
    context: Context,
    next: Next,
    { principal, isStillGood, leave }: Identified & { leave: () => void },
  ): Promise<Response | void> {
    const { req } = context;
    const { requestsPerSecond: limit } = traffic.limits;
    const wait = traffic.request(principal);
    if (wait > 0) throw rateLimited(`at most ${limit} requests a second of one caller`, limit, wait);
    const route = routeOf(context, rules);
    if (!READS.has(req.method)) checkWrite(req, principal, { ...options, needsNoToken: route?.needsNoToken });
    else if (isLocal(principal)) refuseForeign(req, principal, options, 'read');
    if (route) checkAny(principal, route.scopes);
    const caller = { principal, isStillGood, traffic, troupe: troupeFor(troupe, principal), parked: leave };
    if (!READS.has(req.method)) {
      setCaller(context, { ...caller, reading: null });
      return next();
    }
    const reading = await beginReading(caller);
    setCaller(context, { ...caller, reading });
    try {
      return await onAccount(reading, next);
    } finally {
      reading.end();
    }
  }
}

function troupeFor(troupe: Troupe, principal: Principal): Troupe {
  const { tenant } = principal;
  return limitTroupe(tenant === LOCAL.tenant ? troupe : troupe.forTenant(tenant), principal);
}

/** Throws `Refusal`. */
async function identify(context: Context, gate: Gate, options: GuardOptions): Promise<Identified> {
  const found = await gate.identify(context);
  if (isLocal(found.principal)) checkHost(context.req, options);
  return found;
}

/** The caller of a public route, or null if the guard would refuse it. */
export async function trustedCaller(
  context: Context,
  gate: Gate,
  options: GuardOptions,
): Promise<Principal | null> {
  try {
    return (await identify(context, gate, options)).principal;
  } catch (error) {
    if (error instanceof Refusal) return null;
    throw error;
  }
}

/** Requests without a credential must use a known host name. Throws `Refusal`. */
export function checkHost(req: HonoRequest, options: GuardOptions): void {
  if (!isKeyless(options)) return;
  const name = hostNameOf(req);
  if (isKnownHost(name, options)) return;
  const message = `this server does not accept the host name ${name}; use 127.0.0.1, or allow the name`;
  throw new Refusal(403, 'host_refused', message, { host: name });
}

/** Whether it is a name of this machine or an allowed one. */
export function isKnownHost(name: string, { allowedHosts = [] }: GuardOptions): boolean {
  return LOOPBACK.has(name) || allowedHosts.includes(name);
}

/** The host name without its port, in lower case. */
export function hostNameOf(req: HonoRequest): string {
  return nameOf(req).replace(/:\d+$/, '').toLowerCase();
}

/**
 * Browsers send a page's origin in `Origin`; programs send none. Our own page sends the write token from its document, which
 * no other page can read.
 */
function checkWrite(
  req: HonoRequest,
  principal: Principal,
  options: GuardOptions & Pick<Rule, 'needsNoToken'>,
): void {
  const { readOnly, writeToken, needsNoToken } = options;
  if (readOnly) {
    throw new Refusal(403, 'read_only', 'this server was started with --read-only and accepts no writes');
  }
  const origin = req.header('origin');
  refuseForeign(req, principal, options, 'write');
  if (origin === undefined || !isLocal(principal) || isListed(origin, options) || needsNoToken) return;
  const given = req.header(WRITE_TOKEN_HEADER) ?? '';
  if (writeToken !== undefined && isSame(given, writeToken)) return;
  const message = `writes from a page must send its token as ${WRITE_TOKEN_HEADER}; reload the page, the server may have restarted`;
  throw new Refusal(403, 'token_required', message);
}

/** A foreign page cannot see the answer, but the duration of a search would reveal what the log contains. */
function refuseForeign(
  req: HonoRequest,
  principal: Principal,
  options: GuardOptions,
  what: 'read' | 'write',
): void {
  const origin = req.header('origin');
  if (isListed(origin, options)) return;
  const isForeign = origin !== undefined && hostOf(origin) !== nameOf(req);
  const site = req.header('sec-fetch-site');
  // A page on another port of this machine counts as the same site.
  const isElsewhere = site === 'cross-site' || (site === 'same-site' && isLocal(principal));
  if (!isForeign && !isElsewhere) return;
  const from = origin ?? 'elsewhere';
  const message = `pages of ${from} may not ${what} here; list the origin in cors to allow it`;
  throw new Refusal(403, 'origin_refused', message, { origin: from });
}

function isListed(origin: string | undefined, { cors }: GuardOptions): boolean {
  return origin !== undefined && cors?.includes(origin) === true;
}

/** Whether the caller sent no credential. */
function isLocal({ id }: Principal): boolean {
  return id === LOCAL.id;
}

function nameOf(req: HonoRequest): string {
  return req.header('host') ?? new URL(req.url).host;
}

/** Compares in constant time. */
function isSame(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Null for the origin `null`, and for others without a host. */
function hostOf(origin: string): string | null {
  return URL.parse(origin)?.host ?? null;
}

interface GateOptions {
  /** A credential with all rights in the default tenant. */
  token?: string | undefined;
  /** Identifies the owner of a key or token, like `troupe.authenticate`. Without it only `token` is accepted. */
  authenticate?: ((credential: string) => Promise<Principal | null>) | undefined;
  /**
   * What requests without a credential may do. `local`, the default: everything, if there is no `token`. `refused`: nothing,
   * for servers that other machines can reach.
   */
  keyless?: 'local' | 'refused' | undefined;
  /** Limits per address, caller, author and tenant. Requests without a credential are not counted. */
  traffic?: TrafficLimits | undefined;
}

interface Identified {
  principal: Principal;
  /** Null if the credential cannot change. */
  isStillGood: (() => Promise<boolean>) | null;
}

interface Gate {
  /** Throws `Refusal`. */
  identify(context: Context): Promise<Identified>;
}

/** Number of credentials that are cached as valid. */
const MAX_GOOD = 10_000;
const BEARER = /^Bearer +(\S+) *$/i;
/** Counts as no credential: SDKs of other APIs always send one. */
const PLACEHOLDER = 'none';
const PLACEHOLDER_HEADER = `Bearer ${PLACEHOLDER}`;

export function isKeyless({ token, keyless = 'local' }: GateOptions): boolean {
  return token === undefined && keyless === 'local';
}

/**
 * Identifies the caller of a request. With `authenticate`, an invalid header is refused even where a missing one is allowed;
 * the credential `none` counts as missing.
 * Owns the attempts of each address and the recently valid credentials.
 *  1. The answer is the same whatever is wrong with a credential.
 *  2. Nothing is looked up for an address without attempts left. A credential that was valid the last time costs no
 *     attempt, so that guessing does not lock out valid callers.
 */
export function createGate(options: GateOptions, clock: Pick<Clock, 'monotonic'>): Gate {
  const { token, authenticate, traffic = {} } = options;
  const { triesPerSecond = TRAFFIC.triesPerSecond } = traffic;
  const tokenDigest = token === undefined ? null : digest(token);
  const tries = new KeyedBuckets({ perSecond: triesPerSecond, clock });
  const good = new Set<string>();

  async function identify(context: Context): Promise<Identified> {
    const header = context.req.header('authorization') ?? PLACEHOLDER_HEADER;
    const [, credential] = BEARER.exec(header) ?? [];
    const isMissing = credential === PLACEHOLDER;
    if (isKeyless(options) && (isMissing || !authenticate)) return { principal: LOCAL, isStillGood: null };
    if (isMissing || credential === undefined) throw unknownCaller();
    const given = digest(credential);
    if (tokenDigest !== null && timingSafeEqual(given, tokenDigest))
      return { principal: SERVER_TOKEN, isStillGood: null };
    const known = given.toString('base64');
    const wait = good.has(known) ? 0 : tries.take(addressOf(context));
    if (wait > 0)
      throw rateLimited(`at most ${triesPerSecond} new credentials a second`, triesPerSecond, wait);
    const principal = (await authenticate?.(credential)) ?? null;
    remember(known, principal !== null);
    if (!principal) throw unknownCaller();
    const before = JSON.stringify(principal);
    return {
      principal,
      isStillGood: async () => JSON.stringify(await authenticate?.(credential)) === before,
    };
  }

  function remember(known: string, isGood: boolean): void {
    good.delete(known);
    if (isGood) good.add(known);
    const [oldest] = good;
    if (good.size > MAX_GOOD && oldest !== undefined) good.delete(oldest);
  }

  return { identify };
}

/** The same error for missing, wrong, revoked and expired credentials. */
function unknownCaller(): Refusal {
  return new Refusal(401, 'token_required', 'send the header "Authorization: Bearer <token>"');
}

/** Digests have equal lengths, so comparing them reveals nothing about the token's length. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Empty if the server does not know the address: all callers then share one. */
function addressOf({ env }: Context): string {
  const { incoming } = Object(env) as { incoming?: { socket?: { remoteAddress?: string } } };
  return incoming?.socket?.remoteAddress ?? '';
}
