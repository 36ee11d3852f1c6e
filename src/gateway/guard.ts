import { timingSafeEqual } from 'node:crypto';
import type { HonoRequest, MiddlewareHandler } from 'hono';
import { Refusal } from './refusal.ts';

export interface GuardOptions {
  /** Names this server answers to beside the loopback ones. */
  allowedHosts?: readonly string[] | undefined;
  /** When set, every request must carry `Authorization: Bearer <token>`, and may come under any host name. */
  token?: string | undefined;
  /** Nothing may be written, by nobody. */
  readOnly?: boolean | undefined;
  /** What a browser's writes must carry as `x-troupe-token`, where there is no `token`. Without it none are taken. */
  writeToken?: string | undefined;
}

export const WRITE_TOKEN_HEADER = 'x-troupe-token';

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);
export const READS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

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
    if (!READS.has(req.method)) checkWrite(req, options);
    await next();
  };
}

/**
 * Browsers say where a page is from in `Origin`, programs send none. A page of ours knows the write token, which its
 * document carries and no other page can read.
 */
function checkWrite(req: HonoRequest, { token, readOnly, writeToken }: GuardOptions): void {
  if (readOnly) {
    throw new Refusal(403, 'read_only', 'this server was started with --read-only: nothing can be written');
  }
  const origin = req.header('origin');
  const isForeign = origin !== undefined && hostOf(origin) !== nameOf(req);
  if (isForeign || req.header('sec-fetch-site') === 'cross-site') {
    const from = origin ?? 'elsewhere';
    throw new Refusal(403, 'origin_refused', `pages of ${from} may not write here`, { origin: from });
  }
  // Whoever came past `checkTrust` with a server token has sent it.
  if (origin === undefined || token !== undefined) return;
  const given = req.header(WRITE_TOKEN_HEADER) ?? '';
  if (writeToken !== undefined && isSame(given, writeToken)) return;
  const message = `a page's writes carry its token as ${WRITE_TOKEN_HEADER}; load the page again, the server may have been started anew`;
  throw new Refusal(403, 'token_required', message);
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

/** Whether the caller may be answered at all. Throws `Refusal`. */
export function checkTrust(req: HonoRequest, { allowedHosts = [], token }: GuardOptions): void {
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
  if (isSame(header ?? '', `Bearer ${token}`)) return;
  throw new Refusal(401, 'token_required', 'send the header "Authorization: Bearer <token>"');
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
