import type { JSONRPCMessage, RequestId } from '@modelcontextprotocol/client';
import { findExactInteger, parseExact } from '../../events/index.ts';
import { isRecord, isTooDeep, withoutNulls } from './results.ts';

/**
 * Repairs a server's messages before they reach the client library, whose schemas refuse a whole message for one odd field.
 *
 * W1 Null counts as absent, and an envelope field that the protocol does not know is dropped.
 * W2 Results of Troupe's own requests reach Troupe as they were sent, with the digits of their integers; the client sees
 *    an empty result in their place.
 * W3 A request whose answer cannot be read, or will not come, fails at once with a reason.
 */
export interface Wire {
  /** Notes a message that is sent to the server. */
  sent(message: JSONRPCMessage): void;
  /**
   * The messages of a text; throws if it has none. `answering`: the request that an HTTP response belongs to, whatever id the
   * server writes.
   */
  read(text: string, answering?: RequestId): JSONRPCMessage[];
  /** Whether a request waits for its answer. */
  awaits(id: RequestId): boolean;
  /** An error in place of an answer; null if the request is not waiting for one. */
  fail(id: RequestId, why: string): JSONRPCMessage | null;
  /** The request no longer waits for an answer. */
  forget(id: RequestId): void;
  /** The result that the server sent, in exchange for the result that the client returned. */
  take(given: Record<string, unknown>): unknown;
}

/** An answer with an unknown id, while exactly one request is waiting. */
export class ForeignAnswer extends Error {
  readonly waiting: RequestId;

  constructor(waiting: RequestId) {
    super('it answers no request that waits');
    this.waiting = waiting;
  }
}

/** Methods whose results Troupe reads itself. */
const OWN = new Set([
  'tools/list',
  'tools/call',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'prompts/list',
  'prompts/get',
]);
/** Most results that are held without being taken, such as those of calls that had just ended. */
const MOST_HELD = 100;
const HELD = 'troupe/result';
/** Fits the schemas of all methods in `OWN`, in every revision of the protocol. */
const EMPTY = {
  resultType: 'complete',
  tools: [],
  content: [],
  resources: [],
  resourceTemplates: [],
  contents: [],
  prompts: [],
  messages: [],
  ttlMs: 0,
  cacheScope: 'private',
};
const INTERNAL_ERROR = -32_603;
const UNKNOWN_EFFECT = '; whether it had an effect is not known';

export function createWire(): Wire {
  const waiting = new Map<RequestId, string>();
  const held = new Map<number, unknown>();
  let count = 0;

  function fail(id: RequestId, why: string): JSONRPCMessage | null {
    const method = waiting.get(id);
    if (method === undefined) return null;
    waiting.delete(id);
    const message = why + (method === 'tools/call' ? UNKNOWN_EFFECT : '');
    return { jsonrpc: '2.0', id, error: { code: INTERNAL_ERROR, message } };
  }

  function read(text: string, answering?: RequestId): JSONRPCMessage[] {
    let given: unknown;
    try {
      given = parseMessage(text);
    } catch (error) {
      const id = answering ?? idIn(text);
      const failed =
        id === null || !isAnswer(text) ? null : fail(id, `its answer is no JSON (${messageOf(error)})`);
      if (failed) return [failed];
      throw error;
    }
    // Revision 2025-03-26 allows lists of messages.
    return (Array.isArray(given) ? given : [given]).map((each) => messageFrom(each, { text, answering }));
  }

  function messageFrom(given: unknown, { text, answering }: From): JSONRPCMessage {
    if (!isRecord(given)) throw new Error('a message is no object');
    const { id, method } = given;
    if (typeof method === 'string') {
      const params = isRecord(given['params']) ? { params: withoutNulls(given['params']) } : {};
      return { jsonrpc: '2.0', ...(isId(id) && { id }), method, ...params } as JSONRPCMessage;
    }
    if (!('result' in given || 'error' in given || isId(id))) throw new Error('it is no message of JSON-RPC');
    const of = requestOf(waiting, given, answering);
    if (of === null) throw noRequest(waiting, id);
    return answerTo(of, given, text);
  }

  function answerTo(id: RequestId, { result, error }: Record<string, unknown>, text: string): JSONRPCMessage {
    const method = waiting.get(id) ?? '';
    waiting.delete(id);
    if (isPresent(error)) return { jsonrpc: '2.0', id, error: errorFrom(error) };
    if (method === 'initialize') return { jsonrpc: '2.0', id, result: handshakeFrom(result) };
    if (!OWN.has(method)) return { jsonrpc: '2.0', id, result: isRecord(result) ? withoutNulls(result) : {} };
    count += 1;
    held.set(count, method === 'tools/call' ? result : withNumbers(result, text));
    if (held.size > MOST_HELD) held.delete(held.keys().next().value ?? 0);
    return { jsonrpc: '2.0', id, result: { ...EMPTY, _meta: { [HELD]: count } } };
  }

  return {
    sent(message) {
      if (!('method' in message)) return;
      if ('id' in message) return void waiting.set(message.id, message.method);
      const cancelled = message.method === 'notifications/cancelled' && message.params?.['requestId'];
      if (isId(cancelled)) waiting.delete(cancelled);
    },
    read,
    awaits: (id) => waiting.has(id),
    fail,
    forget: (id) => void waiting.delete(id),
    take(given) {
      const { _meta: meta } = given;
      const at = isRecord(meta) ? meta[HELD] : undefined;
      if (typeof at !== 'number' || !held.has(at)) return given;
      const result = held.get(at);
      held.delete(at);
      return result;
    },
  };
}

/** The request that a message answers. Some servers write ids as texts; some omit the id of the first request, which is 0. */
function requestOf(
  waiting: ReadonlyMap<RequestId, string>,
  { id, error }: Record<string, unknown>,
  answering: RequestId | undefined,
): RequestId | null {
  if (isId(id) && waiting.has(id)) return id;
  if (typeof id === 'string' && waiting.has(Number(id))) return Number(id);
  if (answering !== undefined) return waiting.has(answering) ? answering : null;
  const [[only, method] = []] = waiting;
  if (isId(id) || waiting.size !== 1 || only === undefined) return null;
  return method === 'initialize' || isPresent(error) ? only : null;
}

/** Ids count up, so a smaller one belongs to a call that was given up. */
function noRequest(waiting: ReadonlyMap<RequestId, string>, id: unknown): Error {
  const [only] = waiting.keys();
  const isLate = typeof id === 'number' && id >= 0 && id < Number(only);
  return waiting.size === 1 && only !== undefined && isId(id) && !isLate
    ? new ForeignAnswer(only)
    : new Error('it answers no request that waits');
}

interface From {
  text: string;
  answering: RequestId | undefined;
}

/** Schemas and lists are read by Troupe itself, so their integers become plain numbers. */
function withNumbers(result: unknown, text: string): unknown {
  return findExactInteger(result, { text }) ? (JSON.parse(JSON.stringify(result)) as unknown) : result;
}

const BOM = '\uFEFF';
const MESSAGE_START = '{"jsonrpc"';

/** Some servers print a text without a line end before a message. */
function parseMessage(text: string): unknown {
  const clean = text.startsWith(BOM) ? text.slice(1) : text;
  try {
    return parseExact(clean);
  } catch (error) {
    const start = clean.indexOf(MESSAGE_START);
    if (start <= 0) throw error;
    return parseExact(clean.slice(start));
  }
}

/** Characters within which the envelope of an unparsable text is searched. */
const ENVELOPE_CHARACTERS = 200;

/** A request or notification has a method at its beginning. */
function isAnswer(text: string): boolean {
  const envelope = text.slice(0, ENVELOPE_CHARACTERS);
  return /^\s*[{[]/.test(envelope) && !envelope.includes('"method"');
}

function idIn(text: string): RequestId | null {
  const [, id] = /"id" ?: ?(\d{1,15})\b/.exec(text.slice(0, ENVELOPE_CHARACTERS)) ?? [];
  return id === undefined ? null : Number(id);
}

function isPresent(value: unknown): boolean {
  return value !== null && value !== undefined;
}

function isId(value: unknown): value is RequestId {
  return typeof value === 'string' || Number.isSafeInteger(value);
}

function errorFrom(error: unknown): { code: number; message: string; data?: unknown } {
  if (!isRecord(error))
    return { code: INTERNAL_ERROR, message: typeof error === 'string' ? error : 'it failed' };
  const { code, message, data } = error;
  const number = Number(code);
  return {
    code: Number.isSafeInteger(number) && number !== 0 ? number : INTERNAL_ERROR,
    message: typeof message === 'string' && message !== '' ? message : 'it failed without a message',
    ...(data !== undefined && data !== null && !isTooDeep(data) && { data }),
  };
}

/** The protocol revision before HTTP requests had a header for the version. */
const OLDEST_OF_HTTP = '2025-03-26';

/** The parts of an `initialize` result that Troupe needs. The client refuses what is not an object. */
function handshakeFrom(result: unknown): Record<string, unknown> {
  if (!isRecord(result)) return {};
  const { protocolVersion, capabilities, serverInfo, instructions } = result;
  const info = isRecord(serverInfo) ? serverInfo : {};
  const textOf = (value: unknown) => (typeof value === 'string' ? value : '?');
  return {
    protocolVersion: typeof protocolVersion === 'string' ? protocolVersion : OLDEST_OF_HTTP,
    capabilities: isRecord(capabilities) ? capabilitiesFrom(capabilities) : {},
    serverInfo: { name: textOf(info['name']), version: textOf(info['version']) },
    ...(typeof instructions === 'string' && { instructions }),
  };
}

/** The known capabilities. PHP writes an empty object as `[]`. */
function capabilitiesFrom(given: Record<string, unknown>): Record<string, unknown> {
  const known = ['tools', 'resources', 'prompts'].filter((name) => Boolean(given[name]));
  return Object.fromEntries(
    known.map((name) => [name, { listChanged: Object(given[name])['listChanged'] === true }]),
  );
}

/** Shorter values, such as "1" or "prod", occur in any text. */
const MIN_SECRET_LENGTH = 6;

/** Replaces the values of variables by their names, both plain and as JSON escapes them. */
export function createRedactor(variables: Readonly<Record<string, string>>): (text: string) => string {
  const secrets = Object.entries(variables)
    .filter(([, value]) => value.length >= MIN_SECRET_LENGTH)
    .flatMap(([name, value]) =>
      [...new Set([value, JSON.stringify(value).slice(1, -1)])].map((form) => [name, form] as const),
    )
    // Longest first: otherwise a value that contains another would be replaced only in part.
    .sort(([, a], [, b]) => b.length - a.length);
  return (text) => secrets.reduce((kept, [name, value]) => kept.replaceAll(value, () => `[${name}]`), text);
}

/** An error's message with that of its cause: `fetch failed` alone explains nothing. */
export function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const { message, name, cause } = thrown;
  return cause instanceof Error && cause.message !== ''
    ? `${message || name}: ${cause.message}`
    : message || name;
}

/** A server failed when it was asked for the newest revision of the protocol. Old servers do so in many ways. */
export class RefusedProbe extends Error {}

export function isOfProbe(error: unknown): error is Error {
  return error instanceof Error && error.message.startsWith('Version negotiation');
}
