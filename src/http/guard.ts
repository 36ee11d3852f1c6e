import { timingSafeEqual } from 'node:crypto';
import type { Context, HonoRequest, MiddlewareHandler } from 'hono';
import { LOCAL, type Principal, type Traffic, type TrafficLimits } from '../access/index.ts';
import type { Troupe } from '../troupe.ts';
import { setCaller } from './access/caller.ts';
import { checkRoute } from './access/check-scope.ts';
import { type Gate, type GateOptions, type Identified, isKeyless } from './access/gate.ts';
import { limitTroupe } from './access/limit-troupe.ts';
import { rateLimited, Refusal } from './refusal.ts';
import { onAccount } from '../work.ts';

export interface GuardOptions extends GateOptions {
  /** Names this server answers to beside the loopback ones. With a credential a request may come under any. */
  allowedHosts?: readonly string[] | undefined;
  /** Nothing may be written, by nobody. */
  readOnly?: boolean | undefined;
  /** How much is asked of this process by whom; whoever sends no credential is not counted. */
  traffic?: TrafficLimits | undefined;
  /** What a browser's writes must carry as `x-troupe-token`, where they carry no credential. Without it none are taken. */
  writeToken?: string | undefined;
}

const WRITE_TOKEN_HEADER = 'x-troupe-token';

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);
export const READS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

export function isLoopback(host: string): boolean {
  return LOOPBACK.has(host) || host === '::1';
}

/**
 * Lets in who is known and may do what they ask for, and gives their routes the troupe as far as it is theirs.
 *
 * A page from elsewhere can send requests to a server on this machine. Its name gives it away in `Host` where it had
 * its DNS answer changed to ours, and in `Origin` where it had not. Credentials no browser sends by itself.
 */
export function guard(
  troupe: Troupe,
  gate: Gate,
  options: GuardOptions,
  traffic: Traffic,
): MiddlewareHandler {
  return async function checkCaller(context, next) {
    const { req } = context;
    const { principal, isStillGood } = await identify(context, gate, options);
    const { requestsPerSecond: limit } = traffic.limits;
    const wait = traffic.request(principal);
    if (wait > 0) throw rateLimited(`at most ${limit} requests a second of one caller`, limit, wait);
    if (!READS.has(req.method)) checkWrite(req, principal, options);
    else if (isLocal(principal)) refuseForeign(req, principal, 'read');
    checkRoute(context, principal);
    const caller = { principal, isStillGood, traffic, troupe: theirs(troupe, principal) };
    if (!READS.has(req.method)) {
      setCaller(context, { ...caller, reading: null });
      return next();
    }
    const reading = await traffic.reads.begin(principal);
    if ('retryAfterMs' in reading) {
      const { workPerSecond: most } = traffic.reads.limits;
      const told = `at most ${most} rows and KiB a second are read for one caller`;
      throw rateLimited(told, most, reading.retryAfterMs);
    }
    setCaller(context, { ...caller, reading });
    try {
      return await onAccount(reading, next);
    } finally {
      reading.end();
    }
  };
}

function theirs(troupe: Troupe, principal: Principal): Troupe {
  const { tenant } = principal;
  return limitTroupe(tenant === LOCAL.tenant ? troupe : troupe.forTenant(tenant), principal);
}

/** Throws `Refusal`. */
async function identify(context: Context, gate: Gate, options: GuardOptions): Promise<Identified> {
  const found = await gate.identify(context);
  if (isLocal(found.principal)) checkHost(context.req, options);
  return found;
}

/** For routes that stand before the guard: who asks, if the guard would let them in. */
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

/** What is given to whoever asks without a credential is given under our own names only. Throws `Refusal`. */
export function checkHost(req: HonoRequest, options: GuardOptions): void {
  if (!isKeyless(options)) return;
  const { allowedHosts = [] } = options;
  const name = nameOf(req).replace(/:\d+$/, '').toLowerCase();
  if (LOOPBACK.has(name) || allowedHosts.includes(name)) return;
  const message = `this server does not answer to the name ${name}; use 127.0.0.1 or allow it`;
  throw new Refusal(403, 'host_refused', message, { host: name });
}

/**
 * Browsers say where a page is from in `Origin`, programs send none. A page of ours knows the write token, which its
 * document carries and no other page can read.
 */
function checkWrite(req: HonoRequest, principal: Principal, { readOnly, writeToken }: GuardOptions): void {
  if (readOnly) {
    throw new Refusal(403, 'read_only', 'this server was started with --read-only: nothing can be written');
  }
  const origin = req.header('origin');
  refuseForeign(req, principal, 'write');
  if (origin === undefined || !isLocal(principal)) return;
  const given = req.header(WRITE_TOKEN_HEADER) ?? '';
  if (writeToken !== undefined && isSame(given, writeToken)) return;
  const message = `a page's writes carry its token as ${WRITE_TOKEN_HEADER}; load the page again, the server may have been started anew`;
  throw new Refusal(403, 'token_required', message);
}

/** Of what it reads a page from elsewhere sees nothing, but how long a search takes tells it what is there. */
function refuseForeign(req: HonoRequest, principal: Principal, what: 'read' | 'write'): void {
  const origin = req.header('origin');
  const isForeign = origin !== undefined && hostOf(origin) !== nameOf(req);
  const site = req.header('sec-fetch-site');
  // A page of another port of this machine is of the same site, and not ours.
  const isElsewhere = site === 'cross-site' || (site === 'same-site' && isLocal(principal));
  if (!isForeign && !isElsewhere) return;
  const from = origin ?? 'elsewhere';
  throw new Refusal(403, 'origin_refused', `pages of ${from} may not ${what} here`, { origin: from });
}

/** Who has sent no credential. */
function isLocal({ id }: Principal): boolean {
  return id === LOCAL.id;
}

function nameOf(req: HonoRequest): string {
  return req.header('host') ?? new URL(req.url).host;
}

/** In a time that tells nothing of where they differ. */
function isSame(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Null for `null` and other origins that have no host. */
function hostOf(origin: string): string | null {
  return URL.parse(origin)?.host ?? null;
}
