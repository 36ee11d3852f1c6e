import { timingSafeEqual } from 'node:crypto';
import type { HonoRequest, MiddlewareHandler } from 'hono';
import { Refusal } from './refusal.ts';

export interface GuardOptions {
  /** Names this server answers to beside the loopback ones. */
  allowedHosts?: readonly string[] | undefined;
  /** When set, every request must carry `Authorization: Bearer <token>`, and may come under any host name. */
  token?: string | undefined;
}

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);
const READS = new Set(['GET', 'HEAD']);

export function isLoopback(host: string): boolean {
  return LOOPBACK.has(host) || host === '::1';
}

/**
 * A page from elsewhere can send requests to a server on this machine. Its name gives it away in `Host` where it had
 * its DNS answer changed to ours, and in `Origin` where it had not.
 */
export function guard(options: GuardOptions): MiddlewareHandler {
  return async function checkCaller({ req }, next) {
    checkTrust(req, options);
    const origin = req.header('origin');
    if (origin !== undefined && !READS.has(req.method) && hostOf(origin) !== nameOf(req)) {
      throw new Refusal(403, 'origin_refused', `pages of ${origin} may not write here`, { origin });
    }
    await next();
  };
}

/** For routes that stand before the guard: whether it would let the caller read. */
export function isTrusted(req: HonoRequest, options: GuardOptions): boolean {
  try {
    checkTrust(req, options);
    return true;
  } catch (error) {
    if (error instanceof Refusal) return false;
    throw error;
  }
}

function checkTrust(req: HonoRequest, { allowedHosts = [], token }: GuardOptions): void {
  if (token === undefined) checkHost(nameOf(req), allowedHosts);
  else checkToken(req.header('authorization'), token);
}

function nameOf(req: HonoRequest): string {
  return req.header('host') ?? new URL(req.url).host;
}

function checkHost(host: string, allowedHosts: readonly string[]): void {
  const name = host.replace(/:\d+$/, '').toLowerCase();
  if (LOOPBACK.has(name) || allowedHosts.includes(name)) return;
  const message = `this server does not answer to the name ${name}; use 127.0.0.1 or allow it`;
  throw new Refusal(403, 'host_refused', message, { host: name });
}

function checkToken(header: string | undefined, token: string): void {
  const given = Buffer.from(header ?? '');
  const wanted = Buffer.from(`Bearer ${token}`);
  if (given.length === wanted.length && timingSafeEqual(given, wanted)) return;
  throw new Refusal(401, 'token_required', 'send the header "Authorization: Bearer <token>"');
}

/** Null for `null` and other origins that have no host. */
function hostOf(origin: string): string | null {
  return URL.parse(origin)?.host ?? null;
}
