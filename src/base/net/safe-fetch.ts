import type { Agent, Dispatcher } from 'undici';
import { TroupeError } from '../errors.ts';
import { hostOf, reachRule, type Resolve } from './allow-list.ts';
import { addressRefused, assertReachable, openGuardedAgent, resolveBySystem } from './guarded-agent.ts';
import { type Hop, nextHop } from './redirects.ts';
import { pipeline, Readable, type Transform } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip } from 'node:zlib';

const DEFAULT_MAX_BYTES = 5 * 1_024 * 1_024;
export const DEFAULT_TIMEOUT_MS = 30_000;
const MAX_REDIRECTS = 5;
const CONNECT_TIMEOUT_MS = 10_000;
const HEADERS_TIMEOUT_MS = 15_000;
const BODY_TIMEOUT_MS = 15_000;
/** Limits for draining an unwanted body: its connection can be reused after the end of the body. */
const UNWANTED_BYTES = 4_096;
const UNWANTED_MS = 1_000;

export interface SafeFetchSettings {
  /** The allow list (see `reachRule`). Default: every public host on ports 80 and 443. */
  allow?: readonly string[] | undefined;
  /** Limit of a body, after decoding. Default 5 MiB. */
  maxBytes?: number | undefined;
  /** Limit of a whole fetch, redirects included. Default 30,000 ms. */
  timeoutMs?: number | undefined;
  /** For tests. */
  resolve?: Resolve;
}

/** Options of one fetch. */
export interface SafeFetchOptions {
  /** The HTTP method. Default `GET`. */
  method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';
  /** The headers. Default: none. */
  headers?: Readonly<Record<string, string>>;
  /** The body. Default: none. */
  body?: string | Uint8Array;
  /** Applies to GET and HEAD; a request with a body is never redirected. 0 returns the redirect itself. Default 5. */
  maxRedirects?: number;
  /** Most bytes of the answer, decoded. Default 5 MiB. */
  maxBytes?: number;
  /** Longest fetch, ms. Default 30,000. */
  timeoutMs?: number;
  /** Aborts it. */
  signal?: AbortSignal;
  /** `head`: returns status and headers, and ignores the body. HEAD always does. Default `whole`. */
  answer?: 'whole' | 'head';
}

/** An answer. */
export interface SafeResponse {
  /** The final URL, after redirects. */
  url: string;
  /** The HTTP status. */
  status: number;
  /** By lower-case name, without cookies. */
  headers: Readonly<Record<string, string>>;
  /** The body. */
  body: Buffer;
  /** The body was longer than the limit; `body` is its beginning. */
  isCut: boolean;
}

/**
 * Fetches addresses that others supply, within the limits of `reachRule` and `openGuardedAgent`. A response of any
 * status is returned. Throws `address_refused` (permanent), `address_unreachable` (may pass) or `aborted`. Messages
 * name the host only: the rest of an address may hold a secret.
 */
export interface SafeFetch {
  (url: string, options?: SafeFetchOptions): Promise<SafeResponse>;
  /** Closes its connections. */
  close(): Promise<void>;
}

/** Throws `config_invalid` for an invalid allow list. Loads its HTTP client with the first request. */
export function openSafeFetch(settings: SafeFetchSettings = {}): SafeFetch {
  const reach = reachRule(settings.allow);
  const resolve = settings.resolve ?? resolveBySystem;
  let opening: Promise<Agent> | null = null;
  const open = (): Promise<Agent> =>
    (opening ??= openGuardedAgent({ reach, resolve, connectTimeoutMs: CONNECT_TIMEOUT_MS }));

  const follow = async (
    first: Hop,
    options: SafeFetchOptions,
    signal: AbortSignal,
  ): Promise<SafeResponse> => {
    const { method = 'GET', maxRedirects = MAX_REDIRECTS } = options;
    const hops = method === 'GET' || method === 'HEAD' ? maxRedirects : 0;
    let hop = first;
    for (let followed = 0; ; followed += 1) {
      assertReachable(hop.url, reach);
      const answer = await send(await open(), hop, options, signal);
      // A body that is not read to its end is destroyed, which it reports as an error.
      answer.body.on('error', () => undefined);
      const headers = plainHeaders(answer.headers);
      const next = hops === 0 ? null : nextHop(hop, answer.statusCode, headers['location']);
      if (!next) {
        const head = { url: hop.url.href, status: answer.statusCode, headers };
        const maxBytes = options.maxBytes ?? settings.maxBytes ?? DEFAULT_MAX_BYTES;
        return { ...head, ...(await takeBody(answer.body, head, options, maxBytes)) };
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

function send(
  agent: Agent,
  { url, headers }: Hop,
  { method = 'GET', body }: SafeFetchOptions,
  signal: AbortSignal,
): Promise<Dispatcher.ResponseData> {
  return agent.request({
    origin: url.origin,
    path: `${url.pathname}${url.search}`,
    method,
    headers: { 'accept-encoding': ACCEPTED_ENCODINGS, ...headers },
    body: body ?? null,
    signal,
    headersTimeout: HEADERS_TIMEOUT_MS,
    bodyTimeout: BODY_TIMEOUT_MS,
  });
}

async function takeBody(
  body: Dispatcher.ResponseData['body'],
  { headers }: Pick<SafeResponse, 'headers'>,
  { method, answer }: SafeFetchOptions,
  maxBytes: number,
): Promise<Pick<SafeResponse, 'body' | 'isCut'>> {
  if (method === 'HEAD' || answer === 'head') {
    drain(body);
    return { body: Buffer.alloc(0), isCut: false };
  }
  const { bytes, isCut } = await readBody(body, headers['content-encoding'] ?? '', maxBytes);
  return { body: bytes, isCut };
}

/** Runs in the background: a broken or endless body is no failure of a caller that does not want it. */
function drain(body: Dispatcher.ResponseData['body']): void {
  body.dump({ limit: UNWANTED_BYTES, signal: AbortSignal.timeout(UNWANTED_MS) }).catch(() => undefined);
}

/** Lower-case names, without the headers that decide where a request goes or how it is framed. */
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

/** Prefers the error code: messages of sockets and parsers may quote what was sent. */
function reasonOf(thrown: unknown): string {
  if (thrown instanceof UnknownEncoding) return 'its content encoding is not one that was asked for';
  if (thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string') return thrown.code;
  return 'the connection failed';
}

const ACCEPTED_ENCODINGS = 'gzip, br';

/** `isCut`: the body was longer than the limit. */
interface ReadBody {
  bytes: Buffer;
  isCut: boolean;
}

/** A content coding that was not asked for, or several stacked ones. */
class UnknownEncoding extends Error {}

/** Reads at most `maxBytes`, both received and decoded: a small body may decode to a very large one. */
async function readBody(body: Readable, encoding: string, maxBytes: number): Promise<ReadBody> {
  const coming = { isCut: false };
  const decoder = decoderOf(encoding);
  const source = Readable.from(upTo(body, maxBytes, coming), { objectMode: false });
  // The loop below receives every error of the pipeline. Without a decoder there is nothing to join.
  const stream = decoder ? pipeline(source, decoder, () => undefined) : source;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > maxBytes) break;
  }
  return { bytes: Buffer.concat(chunks).subarray(0, maxBytes), isCut: coming.isCut || size > maxBytes };
}

async function* upTo(body: AsyncIterable<Buffer>, maxBytes: number, seen: { isCut: boolean }) {
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    seen.isCut = size > maxBytes;
    yield seen.isCut ? chunk.subarray(0, chunk.length - (size - maxBytes)) : chunk;
    if (seen.isCut) return;
  }
}

/** Decoders return what a truncated body contains, as browsers do. */
function decoderOf(encoding: string): Transform | null {
  const name = encoding.trim().toLowerCase();
  if (name === '' || name === 'identity') return null;
  if (name === 'gzip' || name === 'x-gzip') return createGunzip({ finishFlush: constants.Z_SYNC_FLUSH });
  if (name === 'br') return createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH });
  throw new UnknownEncoding();
}
