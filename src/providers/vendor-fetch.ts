import { TroupeError } from '../base/errors.ts';
import { boundedResponse } from '../base/net/cutter.ts';
import { fetchWithinOrigin } from '../base/net/redirects.ts';
import { type ReplyLimits, replyTooLong } from './reply-limits.ts';
import type { Provider } from './provider.ts';

/** `fetch` as SDKs take it. */
export type VendorFetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/**
 * `fetch` for SDKs: bounds the response, gives up on a server that accepts no connection, and keeps redirects from taking
 * prompt and key to another origin. SDKs themselves read lines of any length and follow any redirect.
 */
export function vendorFetch(limits: ReplyLimits, { streams = true } = {}): VendorFetch {
  return async (input, init) => {
    const [url, parts] = input instanceof Request ? await partsOf(input, init) : [input, init];
    const all = { ...(await fetchOptions()), ...parts };
    const response = await fetchWithinOrigin(url, all).catch((thrown: unknown) => {
      throw thrown instanceof TroupeError ? redirected(thrown) : thrown;
    });
    return boundedResponse(response, {
      maxBytes: limits.receivedBytes,
      ...(streams && { maxEventBytes: limits.eventBytes }),
      tooLong: (what) => (what === 'pieces' ? crumbled() : replyTooLong(LIMITS[what], limits)),
    });
  };
}

/** The URL and options of a request, with the body as bytes, so that a redirect can send it again. */
async function partsOf(input: Request, init: RequestInit = {}): Promise<[url: string, init: RequestInit]> {
  const request = new Request(input, init);
  const { url, method, headers, signal } = request;
  const body = request.body === null ? null : await request.arrayBuffer();
  return [url, { ...init, method, headers, signal, body }];
}

const LIMITS = { answer: 'receivedBytes', event: 'eventBytes' } as const;

function crumbled(): TroupeError {
  return new TroupeError('provider_reply_too_long', 'the answer comes in pieces of a few bytes each');
}

function redirected({ message, data }: TroupeError): TroupeError {
  return new TroupeError('provider_redirected', `${message}. Is the base URL right?`, data);
}

/** Our own error inside the error of an SDK; null if there is none. */
export function ownFailure(thrown: unknown): TroupeError | null {
  for (let at = thrown, depth = 0; at instanceof Error && depth < 6; at = at.cause, depth += 1)
    if (at instanceof TroupeError) return at;
  return null;
}

/** Headers from a variable of the environment, one on each line: they belong to an account with the vendor. */
function customHeaders(variable: string): Record<string, string> {
  const lines = (process.env[variable] ?? '').split('\n').map((line) => /^([^:]+):(.*)$/.exec(line));
  const found = lines.flatMap((line) => (line ? [[line[1]?.trim().toLowerCase(), line[2]?.trim()]] : []));
  return Object.fromEntries(found) as Record<string, string>;
}

/**
 * Default headers for an SDK's client whose server is not the vendor's. The SDK would add the headers in `variable` of the
 * environment: these are removed, and `key` is set.
 */
export function foreignHeaders(variable: string, key: Record<string, string>): Record<string, string | null> {
  const names = Object.keys(customHeaders(variable));
  return { ...Object.fromEntries(names.map((name) => [name, null])), ...key };
}

/** The server of a base URL. Throws for an invalid URL, as the client would. */
export function serverOf(baseUrl: string): NonNullable<Provider['server']> {
  const { hostname, port, protocol } = new URL(baseUrl);
  return { address: hostname, port: port === '' ? (protocol === 'http:' ? 80 : 443) : Number(port) };
}

/**
 * Node's fetch waits 10 s for a connection, and 300 s for headers and between chunks, without an option for either. Its timers
 * are half a second late, and the first call also loads an SDK: in all, less than 5 s pass.
 */
const CONNECT_TIMEOUT_MS = 3_500;

type AgentClass = new (options: Record<string, unknown>) => unknown;
let options: { dispatcher?: unknown } | undefined;

/**
 * Fetch options with a short connect timeout and no other (guard-stream watches for silence). The class is taken from Node's
 * own dispatcher, which exists after the first fetch: so undici need not be a dependency, and a proxy set for Node
 * (NODE_USE_ENV_PROXY) stays in force. If Node has none, fetch keeps its defaults.
 */
async function fetchOptions(): Promise<Record<string, unknown>> {
  if (options) return options;
  await fetch('data:,');
  const current = (globalThis as Record<symbol, unknown>)[Symbol.for('undici.globalDispatcher.1')];
  if (typeof current !== 'object' || current === null) return (options = {});
  try {
    const Agent = current.constructor as AgentClass;
    const connect = { timeout: CONNECT_TIMEOUT_MS };
    options = { dispatcher: new Agent({ connect, headersTimeout: 0, bodyTimeout: 0 }) };
  } catch {
    // A dispatcher set by the user (undici.setGlobalDispatcher) may have another constructor; it stays in force.
    options = {};
  }
  return options;
}
