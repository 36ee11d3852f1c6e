import { EventSourceParserStream } from 'eventsource-parser/stream';
import * as z from 'zod';
import { TroupeError, type VendorFetch } from '../troupe.ts';
import { type CardKey, verifyCard } from './card-keys.ts';
import { Card, RpcAnswer } from './wire.ts';

interface ClientOptions {
  /** The agent card, or the address under which `/.well-known/agent-card.json` is. */
  url: string;
  apiKey?: string | undefined;
  cardKeys?: readonly CardKey[] | undefined;
  fetch: VendorFetch;
}

/** A remote agent, as its card describes it. */
export interface RemoteAgent {
  streams: boolean;
  /** Whether it takes parts of this type. */
  takes: (mediaType: string) => boolean;
  call(method: string, params: object, signal: AbortSignal): Promise<unknown>;
  /** Resolves to the results, once the server has accepted the request. */
  stream(method: string, params: object, signal: AbortSignal): Promise<AsyncIterable<unknown>>;
}

const WELL_KNOWN = '/.well-known/agent-card.json';
const TASK_NOT_FOUND = -32_001;
/** Invalid requests, unknown methods and parameters, and what the remote agent cannot do. */
const CALLERS_FAULT = [-32_600, -32_601, -32_602, -32_003, -32_004, -32_005, -32_009];

/** Reads the card. Throws a TroupeError, or what `fetch` throws. */
export async function findRemote(options: ClientOptions, signal: AbortSignal): Promise<RemoteAgent> {
  const { url, apiKey, cardKeys, fetch } = options;
  const headers = {
    'content-type': 'application/json',
    'a2a-version': '1.0',
    ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
  };
  const at = url.endsWith('.json') ? url : `${url.replace(/\/$/, '')}${WELL_KNOWN}`;
  const response = await fetch(at, { headers, signal });
  const given: unknown = JSON.parse(await textOf(response));
  const card = read(Card, given, 'the agent card');
  if (cardKeys) verifyCard(given, cardKeys, at);
  const endpoint = endpointOf(card, at);

  async function post(method: string, params: object, abort: AbortSignal): Promise<Response> {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const answer = await fetch(endpoint, { method: 'POST', headers, body, signal: abort });
    if (!answer.ok) await textOf(answer);
    return answer;
  }

  return {
    streams: card.capabilities.streaming,
    takes: (mediaType) => takes(card.defaultInputModes, mediaType),
    call: async (method, params, abort) =>
      resultOf(JSON.parse(await textOf(await post(method, params, abort)))),
    async stream(method, params, abort) {
      const answer = await post(method, params, abort);
      // A refusal comes as plain JSON.
      if (answer.headers.get('content-type')?.startsWith('text/event-stream')) return resultsOf(answer);
      return [resultOf(JSON.parse(await textOf(answer)))] as unknown as AsyncIterable<unknown>;
    },
  };
}

/** The JSON-RPC endpoint. Another origin than the card's would get the key and the prompts. */
function endpointOf({ supportedInterfaces }: Card, at: string): string {
  const found = supportedInterfaces.find(
    ({ protocolBinding, protocolVersion }) =>
      protocolBinding === 'JSONRPC' && protocolVersion.startsWith('1.'),
  );
  if (!found)
    throw new TroupeError('provider_invalid_request', 'the agent card has no JSONRPC interface of version 1');
  if (new URL(found.url).origin !== new URL(at).origin) {
    const message = `the agent card at ${new URL(at).origin} names an interface at ${new URL(found.url).origin}: only the same origin is used`;
    throw new TroupeError('provider_redirected', message);
  }
  return found.url;
}

/** A card that names no types says nothing about them. */
function takes(modes: readonly string[], mediaType: string): boolean {
  const [family] = mediaType.split('/');
  return modes.length === 0 || [mediaType, `${family}/*`, '*/*', '*'].some((mode) => modes.includes(mode));
}

async function textOf(response: Response): Promise<string> {
  const text = await response.text();
  if (response.ok) return text;
  const { status, headers } = response;
  throw Object.assign(new Error(text.trim() || 'the answer has no body'), { status, headers });
}

async function* resultsOf(response: Response): AsyncGenerator<unknown> {
  if (!response.body) return;
  const messages = response.body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream());
  for await (const { data } of messages) yield resultOf(JSON.parse(data));
}

function resultOf(body: unknown): unknown {
  const { result, error } = read(RpcAnswer, body, 'the answer');
  if (!error) return result;
  const message = `the remote agent refused: ${error.message} (${error.code})`;
  if (error.code === TASK_NOT_FOUND) throw new TroupeError('provider_session_lost', message);
  const fault = CALLERS_FAULT.includes(error.code) ? 'provider_invalid_request' : 'provider_failed';
  throw new TroupeError(fault, message);
}

/** Throws `provider_invalid_reply`. */
export function read<T>(shape: z.ZodType<T>, value: unknown, what: string): T {
  const { data, error } = shape.safeParse(value);
  if (error)
    throw new TroupeError('provider_invalid_reply', `${what} is not A2A 1.0: ${z.prettifyError(error)}`);
  return data;
}
