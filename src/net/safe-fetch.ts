import { isIP, type LookupFunction } from 'node:net';
import type { Agent, buildConnector, Dispatcher } from 'undici';
import { TroupeError } from '../errors.ts';
import { type AddressRule, hostOf, portOf, reachRule, type ReachRule } from './allow-list.ts';
import { ACCEPTED_ENCODINGS, readBody, UnknownEncoding } from './read-body.ts';
import { type Hop, nextHop } from './redirects.ts';
import { lookup } from 'node:dns/promises';

export const DEFAULT_MAX_BYTES = 5 * 1_024 * 1_024;
export const DEFAULT_TIMEOUT_MS = 30_000;
const MAX_REDIRECTS = 5;
const CONNECT_TIMEOUT_MS = 10_000;
const HEADERS_TIMEOUT_MS = 15_000;
const BODY_TIMEOUT_MS = 15_000;
/** A body that nobody wants is let come so far and so long, as its connection can be used again after its end. */
const UNWANTED_BYTES = 4_096;
const UNWANTED_MS = 1_000;

export interface SafeFetchSettings {
  /** What may be reached, and nothing else (see `reachRule`); without it every public host on port 80 and 443. */
  allow?: readonly string[] | undefined;
  /** Of a body, after decoding. Default 5 MiB. */
  maxBytes?: number | undefined;
  /** Of everything together, redirects included. Default 30,000 ms. */
  timeoutMs?: number | undefined;
  /** For tests. */
  resolve?: Resolve;
}

export interface SafeFetchOptions {
  method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';
  headers?: Readonly<Record<string, string>>;
  body?: string | Uint8Array;
  /** Of GET and HEAD; what is sent with a body is never sent on. 0 hands the redirect itself back. Default 5. */
  maxRedirects?: number;
  maxBytes?: number;
  timeoutMs?: number;
  signal?: AbortSignal;
  /** `head`: status and headers are the answer, whatever becomes of its body. Always so of HEAD. Default `whole`. */
  answer?: 'whole' | 'head';
}

export interface SafeResponse {
  /** Where it came from, after redirects. */
  url: string;
  status: number;
  /** By lower-case name. Cookies are left out. */
  headers: Readonly<Record<string, string>>;
  body: Buffer;
  /** There was more than the limit: `body` is the beginning. */
  isCut: boolean;
}

/**
 * Fetches what others name without reaching what they must not: see `reachRule` and `openGuardedAgent`. Any status is
 * an answer. Throws `address_refused` (for good), `address_unreachable` (try later) or `aborted`; their messages have
 * the host and never the rest of an address, which may hold a secret.
 */
export interface SafeFetch {
  (url: string, options?: SafeFetchOptions): Promise<SafeResponse>;
  close(): Promise<void>;
}

/** Throws `config_invalid` for an allow list that is none. Loads its HTTP client with the first request. */
export function openSafeFetch(settings: SafeFetchSettings = {}): SafeFetch {
  const reach = reachRule(settings.allow);
  const resolve = settings.resolve ?? resolveBySystem;
  let opening: Promise<Agent> | null = null;
  const open = (): Promise<Agent> =>
    (opening ??= openGuardedAgent({ reach, resolve, connectTimeoutMs: CONNECT_TIMEOUT_MS }));

  const check = (url: URL): void => {
    const host = hostOf(url);
    if (url.protocol !== 'http:' && url.protocol !== 'https:')
      throw addressRefused(host, 'only http and https addresses are fetched');
    if (url.username !== '' || url.password !== '')
      throw addressRefused(host, 'an address with a user or a password is not fetched');
    const verdict = reach({ host, port: portOf(url) });
    if ('refused' in verdict) throw addressRefused(host, verdict.refused);
    const reason = isIP(host) === 0 ? null : verdict.addresses(host);
    if (reason !== null) throw addressRefused(host, `its address is ${reason}`);
  };

  const request = async (
    hop: Hop,
    options: SafeFetchOptions,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> => {
    const { method = 'GET', body = null } = options;
    const headers = { 'accept-encoding': ACCEPTED_ENCODINGS, ...hop.headers };
    const timeouts = { headersTimeout: HEADERS_TIMEOUT_MS, bodyTimeout: BODY_TIMEOUT_MS };
    const agent = await open();
    const { origin, pathname, search } = hop.url;
    return agent.request({
      origin,
      path: `${pathname}${search}`,
      method,
      headers,
      body,
      signal,
      ...timeouts,
    });
  };

  const follow = async (
    first: Hop,
    options: SafeFetchOptions,
    signal: AbortSignal,
  ): Promise<SafeResponse> => {
    const { method = 'GET', maxRedirects = MAX_REDIRECTS } = options;
    const hops = method === 'GET' || method === 'HEAD' ? maxRedirects : 0;
    let hop = first;
    for (let followed = 0; ; followed += 1) {
      check(hop.url);
      const answer = await request(hop, options, signal);
      // Whoever leaves a body early destroys it, and it says so.
      answer.body.on('error', () => undefined);
      const headers = plainHeaders(answer.headers);
      const next = hops === 0 ? null : nextHop(hop, answer.statusCode, headers['location']);
      if (!next && (method === 'HEAD' || options.answer === 'head')) {
        leave(answer.body);
        return { url: hop.url.href, status: answer.statusCode, headers, body: Buffer.alloc(0), isCut: false };
      }
      if (!next) {
        const maxBytes = options.maxBytes ?? settings.maxBytes ?? DEFAULT_MAX_BYTES;
        const { bytes, isCut } = await readBody(answer.body, headers['content-encoding'] ?? '', maxBytes);
        return { url: hop.url.href, status: answer.statusCode, headers, body: bytes, isCut };
      }
      answer.body.destroy();
      if ('refused' in next) throw addressRefused(hostOf(hop.url), next.refused);
      if (followed >= hops) throw addressRefused(hostOf(hop.url), `it redirects more than ${hops} times`);
      hop = next;
    }
  };

  const fetch = async (text: string, options: SafeFetchOptions = {}): Promise<SafeResponse> => {
    const url = URL.parse(text);
    if (!url) throw addressRefused('', 'it is not a URL');
    const timeout = AbortSignal.timeout(options.timeoutMs ?? settings.timeoutMs ?? DEFAULT_TIMEOUT_MS);
    const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
    try {
      return await follow({ url, headers: sentHeaders(options.headers) }, options, signal);
    } catch (thrown) {
      if (thrown instanceof TroupeError) throw thrown;
      const host = hostOf(url);
      if (options.signal?.aborted) throw new TroupeError('aborted', `fetching from ${host} was aborted`);
      const reason = timeout.aborted ? 'it took too long' : reasonOf(thrown);
      throw new TroupeError('address_unreachable', `nothing was fetched from ${host}: ${reason}`, {
        host,
        reason,
      });
    }
  };
  const close = async (): Promise<void> => {
    const agent = await opening;
    await agent?.destroy();
  };
  return Object.assign(fetch, { close });
}

/** Not waited for: a body that is broken or has no end is no failure of those who did not want it. */
function leave(body: Dispatcher.ResponseData['body']): void {
  body.dump({ limit: UNWANTED_BYTES, signal: AbortSignal.timeout(UNWANTED_MS) }).catch(() => undefined);
}

/** Lower case, and without what decides where a request goes or how it is framed. */
function sentHeaders(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  const framing = /^(?:host|connection|content-length|transfer-encoding|upgrade|expect|te|trailer|proxy-.*)$/;
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  return Object.fromEntries(lower.filter(([name]) => !framing.test(name)));
}

function plainHeaders(headers: Dispatcher.ResponseData['headers']): Record<string, string> {
  const plain: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name === 'set-cookie') continue;
    plain[name] = typeof value === 'string' ? value : value.join(', ');
  }
  return plain;
}

/** The code where there is one: messages of sockets and parsers may quote what was sent. */
function reasonOf(thrown: unknown): string {
  if (thrown instanceof UnknownEncoding) return 'its content encoding is not one that was asked for';
  if (thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string') return thrown.code;
  return 'the connection failed';
}

/** All addresses of a name. */
type Resolve = (host: string) => Promise<readonly { address: string; family: number }[]>;

const resolveBySystem: Resolve = (host) => lookup(host, { all: true });

/**
 * Connections to where it may. Invariants:
 * 1. Every connection is checked where it is made, whoever asked for it; a kept one was checked when it was made.
 * 2. The addresses that were checked are those connected to: the name is looked up once, in between nobody can change
 *    what it means.
 * 3. One address that is refused refuses the name.
 */
export async function openGuardedAgent(parts: {
  reach: ReachRule;
  resolve: Resolve;
  connectTimeoutMs: number;
}): Promise<Agent> {
  const { Agent: AgentClass, buildConnector: build } = await import('undici');
  const connect: buildConnector.connector = (options, callback) => {
    const { hostname, protocol, port } = options;
    const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
    const target = { host, port: Number(port) || (protocol === 'https:' ? 443 : 80) };
    const verdict = parts.reach(target);
    const refused = 'refused' in verdict ? verdict.refused : null;
    // Sockets do not look up what is an address already.
    const reason = refused ?? ('addresses' in verdict && isIP(host) !== 0 ? verdict.addresses(host) : null);
    if (reason !== null || 'refused' in verdict) return callback(addressRefused(host, reason ?? ''), null);
    const lookupChecked = checkedLookup(host, verdict.addresses, parts.resolve);
    build({ timeout: parts.connectTimeoutMs, allowH2: false, lookup: lookupChecked })(options, callback);
  };
  return new AgentClass({ connect, connections: 4, allowH2: false });
}

function addressRefused(host: string, reason: string): TroupeError {
  const what = host === '' ? 'this address' : host;
  const message = `${what} is not fetched: ${reason}`;
  return new TroupeError('address_refused', message, { host, reason });
}

function checkedLookup(host: string, addresses: AddressRule, resolve: Resolve): LookupFunction {
  return (_name, options, callback) => {
    resolve(host).then(
      (found) => {
        const [first] = found;
        if (!first) return callback(new Error(`${host} has no address`), '');
        for (const { address } of found) {
          const reason = addresses(address);
          // The address itself would tell who asks what is behind the name.
          if (reason !== null) return callback(addressRefused(host, `its address is ${reason}`), '');
        }
        if (options.all) callback(null, [...found]);
        else callback(null, first.address, first.family);
      },
      (thrown: unknown) => callback(thrown instanceof Error ? thrown : new Error(String(thrown)), ''),
    );
  };
}
