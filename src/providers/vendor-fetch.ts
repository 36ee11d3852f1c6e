import { TroupeError } from '../base/errors.ts';
import { boundedResponse } from '../base/net/bounded-response.ts';
import { fetchWithinOrigin } from '../base/net/redirects.ts';
import { type ReplyLimits, replyTooLong } from './reply-limits.ts';
import type { Provider } from './provider.ts';
import { createParser, type EventSourceMessage } from 'eventsource-parser';

/** `fetch` as SDKs take it. */
export type VendorFetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/**
 * `fetch` for SDKs: bounds the response, gives up a server that takes no connection, and keeps redirects from taking
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

/** The body as bytes, which a redirect sends again. */
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

/** The headers in a variable of the environment, a line each: they belong to an account with the vendor. */
function customHeaders(variable: string): Record<string, string> {
  const lines = (process.env[variable] ?? '').split('\n').map((line) => /^([^:]+):(.*)$/.exec(line));
  const found = lines.flatMap((line) => (line ? [[line[1]?.trim().toLowerCase(), line[2]?.trim()]] : []));
  return Object.fromEntries(found) as Record<string, string>;
}

/**
 * Default headers of an SDK's client for a server that is not the vendor's. The SDK adds the headers in `variable` of
 * the environment: these are removed, and `key` is set.
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
 * Node's fetch waits 10 s for a connection and 300 s for headers and between chunks, without an option for either.
 * Its timers are half a second late, and the first call also loads an SDK: less than 5 s in all.
 */
const CONNECT_TIMEOUT_MS = 3_500;

type AgentClass = new (options: Record<string, unknown>) => unknown;
let options: { dispatcher?: unknown } | undefined;

/**
 * Fetch options with a short connect timeout and no other (guard-stream watches for silence). The class is taken from
 * Node's own dispatcher, which appears with the first fetch, so that undici need not be a dependency and a proxy set
 * for Node (NODE_USE_ENV_PROXY) stays in force. If Node has none, fetch keeps its defaults.
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

/** Words with which proxies keep a connection open, sent as data. */
const KEEP_ALIVE = /^[\w .:-]{0,64}$/;
/** Such words that are none of these. */
const SAYS_FAILURE = /error|fail|denied|limit|invalid|timeout/i;
const DONE = '[DONE]';

/**
 * The JSON objects of a streamed answer, as servers frame them: events with or without names, a last event without the empty
 * line behind it, empty data, comments; or no events at all but one JSON document, a list or lines of JSON. A reported
 * error is thrown, with the `headers` of the answer and the report as `error`. `type` of an object that has none is the
 * name of its event.
 */
export async function* readEventStream<E>({ body, headers }: Response): AsyncGenerator<E> {
  if (!body) return;
  const frames: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (frame) => void frames.push(frame) });
  let isJson: boolean | null = null;
  let json = '';
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    isJson ??= beginsJson(piece);
    if (isJson) json += piece;
    else parser.feed(piece);
    for (const frame of frames.splice(0)) {
      if (frame.data.trim() === DONE) return;
      yield* objectsOf<E>(parsed(frame), frame.event, headers);
    }
  }
  if (isJson) {
    for (const value of documentsIn(json)) yield* objectsOf<E>(value, undefined, headers);
    return;
  }
  parser.feed('\n\n');
  for (const frame of frames) {
    // An event that was cut off is no event: its answer is incomplete.
    if (frame.data.trim() !== DONE && isWhole(frame.data))
      yield* objectsOf<E>(parsed(frame), frame.event, headers);
  }
}

/** Null: nothing but white space has come yet. No line of an event stream begins like this. */
function beginsJson(piece: string): boolean | null {
  const first = piece.trimStart()[0];
  return first === undefined ? null : first === '{' || first === '[';
}

function parsed({ event, data }: EventSourceMessage): unknown {
  const text = data.trim();
  if (text === '') return null;
  try {
    return JSON.parse(text);
  } catch (cause) {
    if (event === 'error') return { error: text };
    if (KEEP_ALIVE.test(text) && !SAYS_FAILURE.test(text)) return null;
    throw new Error(`an event of the answer is not JSON: ${text.slice(0, 200)}`, { cause });
  }
}

function isWhole(data: string): boolean {
  try {
    JSON.parse(data);
    return true;
  } catch {
    return false;
  }
}

/** One document, perhaps with events behind it, or a document on each line. */
function documentsIn(text: string): unknown[] {
  const [document = ''] = text.split(/^data:/m, 1);
  try {
    return [JSON.parse(document)];
  } catch {
    const lines = text.split(/[\r\n]+/).map((line) => line.replace(/^data:/, '').trim());
    // The last line may be cut off.
    return lines.filter((line) => line !== DONE && isWhole(line)).map((line): unknown => JSON.parse(line));
  }
}

function* objectsOf<E>(value: unknown, event: string | undefined, headers: Headers): Generator<E> {
  for (const each of Array.isArray(value) ? (value as unknown[]) : [value]) {
    if (typeof each !== 'object' || each === null || Array.isArray(each)) continue;
    if (event === 'error' || saysError(each)) throw reportedFailure(JSON.stringify(each), each, { headers });
    yield (event === undefined || 'type' in each ? each : { ...each, type: event }) as E;
  }
}

/** OpenAI's Responses report a failure in an event of the type `error`, which has its words beside it. */
function saysError(value: object): boolean {
  const { error, object, errors } = value as { error?: unknown; object?: unknown; errors?: unknown };
  return Boolean(error) || object === 'error' || (Array.isArray(errors) && errors.length > 0);
}

/** The failure that an answer reports, in the form that `vendorErrorOf` reads. `text`: its body as it came. */
function reportedFailure(text: string, body: unknown, facts: { status?: number; headers: Headers }): Error {
  return Object.assign(new Error(text.trim() || 'the answer has no body'), facts, { error: body });
}
