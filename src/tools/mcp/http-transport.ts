import type { fetch as UndiciFetch } from 'undici';
import { TroupeError } from '../../base/errors.ts';
import { hostOf, portOf, reachRule } from '../../base/net/allow-list.ts';
import { boundedResponse } from '../../base/net/cutter.ts';
import { fetchWithinOrigin } from '../../base/net/redirects.ts';
import { assertReachable, openGuardedAgent } from '../../base/net/guarded-agent.ts';
import type { HttpServer, SignIn } from './settings.ts';
import { MAX_MESSAGE_BYTES } from './stdio-transport.ts';
import type { JSONRPCMessage, RequestId, OAuthClientProvider } from '@modelcontextprotocol/client';
import type { Wire } from './wire.ts';

/**
 * `fetch` for one server, for its messages and its sign-in alike. Invariants:
 * F1 It reaches the origin of the server, that of its issuer, and the hosts in `oauth.allow`, whatever the server or its
 *    metadata say. The first two may be private, because the operator wrote them.
 * F2 The headers of the settings go to the origin of the server only.
 * F3 Redirects are followed within an origin only.
 * F4 Every answer is bounded, and every event of a stream.
 */
interface ServerFetch {
  fetch: (input: string | URL, init?: RequestInit) => Promise<Response>;
  /** Closes all its connections, even with requests open. */
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** A stream has a connection of its own and may be silent for long; calls have their own timeouts. */
const STREAMS = { connections: null, headersTimeout: 0, bodyTimeout: 0 };
/** Limit for requests of a sign-in, to which the client gives none. */
const UNTIMED_MS = 30_000;

export function openServerFetch(
  { url, oauth }: Pick<HttpServer, 'url' | 'oauth'>,
  headers: Readonly<Record<string, string>>,
): ServerFetch {
  const own = new URL(url);
  const reach = reachRule([
    entryOf(own),
    ...(oauth ? [entryOf(new URL(oauth.issuer)), ...(oauth.allow ?? [])] : []),
  ]);
  let opening: Promise<(url: URL, init: RequestInit) => Promise<Response>> | null = null;
  let end: () => Promise<void> = () => Promise.resolve();

  async function open() {
    const { fetch } = await import('undici');
    const options = STREAMS;
    const dispatcher = await openGuardedAgent({ reach, connectTimeoutMs: CONNECT_TIMEOUT_MS, options });
    end = () => dispatcher.destroy();
    return (to: URL, init: RequestInit) => {
      assertReachable(to, reach);
      const sent = { ...init, dispatcher } as unknown as Parameters<typeof UndiciFetch>[1];
      return fetch(to, sent) as unknown as Promise<Response>;
    };
  }

  return {
    async fetch(input, init = {}) {
      const to = new URL(input);
      const signal = init.signal ?? AbortSignal.timeout(UNTIMED_MS);
      const all = to.origin === own.origin ? withHeaders(init, headers) : init;
      const response = await fetchWithinOrigin(to, { ...all, signal }, await (opening ??= open())).catch(
        asTypeError,
      );
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
      return boundedResponse(response, {
        maxBytes: isStream ? Infinity : MAX_MESSAGE_BYTES,
        ...(isStream && { maxEventBytes: MAX_MESSAGE_BYTES }),
        tooLong: () => new Error(`a message is over the maximum size of ${MAX_MESSAGE_BYTES} bytes`),
      });
    },
    async close() {
      await opening?.catch(() => undefined);
      await end();
    },
  };
}

/** The entry includes the port, which makes it exact: it allows private addresses, but no other port. */
function entryOf(url: URL): string {
  const host = hostOf(url);
  return `${host.includes(':') ? `[${host}]` : host}:${portOf(url)}`;
}

function withHeaders(init: RequestInit, added: Readonly<Record<string, string>>): RequestInit {
  const headers = new Headers(init.headers);
  for (const [name, value] of Object.entries(added)) if (!headers.has(name)) headers.set(name, value);
  return { ...init, headers };
}

/** After any other error of a discovery, the client would continue with a guess. */
function asTypeError(thrown: unknown): never {
  throw thrown instanceof TroupeError ? new TypeError(thrown.message, { cause: thrown }) : thrown;
}

type Fetch = ServerFetch['fetch'];

/** Most characters shown of an answer that is not a message. */
const SHOWN_CHARACTERS = 120;
const JSON_TYPE = 'application/json';
const STREAM_TYPE = 'text/event-stream';

/**
 * `fetch` for the client, with answers that it can read. Servers and proxies answer with wrong content types, with other ids,
 * or not at all. `ServerFetch` passes on only whole events with line feeds, which this relies on.
 */
export function readAnswers(fetch: Fetch, wire: Wire): Fetch {
  /** Open streams on which the server may send the answer to any request. */
  let streams = 0;

  return async (input, init = {}) => {
    const response = await fetch(input, init);
    if (!response.ok) return response;
    const id = requestIn(init);
    if (typeOf(response) === STREAM_TYPE && response.body) {
      if (id !== null) return streamOf(response, response.body, (text) => eventsOf(text, wire, id));
      streams += 1;
      return streamOf(
        response,
        response.body,
        (text) => eventsOf(text, wire),
        () => (streams -= 1),
      );
    }
    if (id === null || (response.status === 202 && streams > 0)) return response;
    return readWhole(response, wire, id);
  };
}

/** Id of the JSON-RPC request; null for anything else, such as a request of a sign-in. */
function requestIn({ method, body }: RequestInit): RequestId | null {
  if (method !== 'POST' || typeof body !== 'string' || !body.startsWith('{"')) return null;
  const { id, method: called } = JSON.parse(body) as { id?: RequestId; method?: string };
  return called === undefined ? null : (id ?? null);
}

async function readWhole(response: Response, wire: Wire, id: RequestId): Promise<Response> {
  const text = await response.text();
  if (/^(?:event|data|id|retry)?:/.test(text))
    return withText(response, STREAM_TYPE, eventsOf(`${text}\n\n`, wire, id));
  const messages = messagesOf(text, wire, id);
  const failed = wire.fail(id, whyUnread(response, text));
  return withText(response, JSON_TYPE, JSON.stringify(failed ? [...messages, failed] : messages));
}

function messagesOf(text: string, wire: Wire, id: RequestId): JSONRPCMessage[] {
  try {
    return wire.read(text, id);
  } catch {
    return []; // `whyUnread` shows what came instead of a message.
  }
}

function whyUnread(response: Response, text: string): string {
  const shown = text.replaceAll(/\s+/g, ' ').trim().slice(0, SHOWN_CHARACTERS);
  if (shown !== '')
    return `it answered with ${typeOf(response) || 'no content type'} that is no message: ${shown}`;
  return response.status === 202
    ? 'it accepted the request (202) and sends no answer'
    : `it answered with nothing (${response.status})`;
}

/** Rewrites events that hold messages into a form that the client reads. Other events stay unchanged. */
function eventsOf(text: string, wire: Wire, id?: RequestId): string {
  return text
    .split(/\n{2,}/)
    .filter((event) => event !== '')
    .map((event) => `${readEvent(event, wire, id)}\n\n`)
    .join('');
}

function readEvent(event: string, wire: Wire, id: RequestId | undefined): string {
  const lines = event.split('\n');
  const data = lines.filter((line) => line.startsWith('data:')).map((line) => line.slice(5));
  const text = data.join('\n').trim();
  if (text === '') return event;
  try {
    const messages = wire.read(text, id).map((message) => `data: ${JSON.stringify(message)}`);
    // The event's name is dropped: whatever it is, the content is messages.
    const kept = lines.filter((line) => line.startsWith('id:') || line.startsWith('retry:'));
    return [...kept, messages.join('\n\n')].join('\n');
  } catch {
    return event; // The client reports the error.
  }
}

/** The stream, changed event by event. The last event may lack the empty line after it. */
function streamOf(
  response: Response,
  body: ReadableStream<Uint8Array>,
  change: (text: string) => string,
  onEnd: () => void = () => undefined,
): Response {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  // `cancel` is in the standard and in Node, but not in every type library. The compiler accepts it in a variable.
  const transformer = {
    transform: (piece: Uint8Array, controller: { enqueue(changed: Uint8Array): void }) =>
      controller.enqueue(encoder.encode(change(decoder.decode(piece, { stream: true })))),
    flush: onEnd,
    cancel: onEnd,
  };
  return new Response(body.pipeThrough(new TransformStream<Uint8Array, Uint8Array>(transformer)), {
    status: 200,
    headers: headersOf(response, STREAM_TYPE),
  });
}

function withText(response: Response, type: string, text: string): Response {
  return new Response(text, { status: 200, headers: headersOf(response, type) });
}

function headersOf(response: Response, type: string): Headers {
  const headers = new Headers(response.headers);
  headers.set('content-type', type);
  // The new body has another length, and is not compressed.
  for (const name of ['content-length', 'content-encoding']) headers.delete(name);
  return headers;
}

function typeOf(response: Response): string {
  return (response.headers.get('content-type')?.split(';')[0] ?? '').trim().toLowerCase();
}

/** Client name with which Troupe signs in. */
const CLIENT_NAME = 'troupe';
const SAID_CHARACTERS = 200;

/**
 * Gets tokens with the client's own credentials and keeps them in memory: after a restart they are requested again. The client
 * library renews a token that the server no longer accepts, and sends the credentials only to the issuer of the settings.
 */
export async function createSignIn(
  { issuer, clientId, clientSecretEnv, privateKeyEnv, algorithm = 'RS256', scope }: SignIn,
  variables: Readonly<Record<string, string>>,
): Promise<OAuthClientProvider> {
  const client = await import('@modelcontextprotocol/client');
  const shared = {
    clientId,
    clientName: CLIENT_NAME,
    expectedIssuer: issuer,
    ...(scope !== undefined && { scope }),
  };
  if (privateKeyEnv === undefined) {
    const clientSecret = variables[clientSecretEnv ?? ''] ?? '';
    return new client.ClientCredentialsProvider({ ...shared, clientSecret });
  }
  // A variable of the environment usually holds the key in one line.
  const privateKey = (variables[privateKeyEnv] ?? '').replaceAll('\\n', '\n');
  return new client.PrivateKeyJwtProvider({ ...shared, privateKey, algorithm });
}

/** Returns a function that explains a failed sign-in and its remedy. The function returns null for any other error. */
export async function signInProblem({ oauth }: HttpServer): Promise<(error: unknown) => string | null> {
  const client = await import('@modelcontextprotocol/client');
  // The library's guards accept any error of a similar structure.
  const isUnauthorized = (thrown: unknown): boolean => client.UnauthorizedError.isInstance(thrown);
  function wordsOf(thrown: Error): string | null {
    if (thrown instanceof TroupeError)
      return thrown.code === 'address_refused' ? refusedAddress(thrown, oauth) : null;
    if (thrown instanceof client.AuthorizationServerMismatchError)
      return `sign-in: it names another authorization server (${shown(thrown.currentIssuer)}) than oauth.issuer, which alone gets the credentials`;
    if (thrown instanceof client.OAuthError)
      return `sign-in: the authorization server refused it (${shown(thrown.code)}: ${shown(thrown.message)}); check oauth.clientId, ${variableOf(oauth)} and oauth.scope`;
    const is401 = thrown instanceof client.SdkHttpError && thrown.status === 401;
    if (!is401 && !isUnauthorized(thrown)) return null;
    return oauth
      ? 'sign-in: it refused a token that was just issued; check oauth.scope, and whether the issuer gives tokens for this server'
      : 'it asks for a sign-in (401): give it "oauth", or a header with "headersEnv"';
  }
  return (error) => {
    for (let at = error, depth = 0; at instanceof Error && depth < 6; at = at.cause, depth += 1) {
      const words = wordsOf(at);
      if (words !== null) return words;
    }
    return null;
  };
}

function refusedAddress({ message }: TroupeError, oauth: SignIn | undefined): string {
  return oauth ? `${message}. Of other hosts, only those in "oauth.allow" are reached` : message;
}

function variableOf(oauth: SignIn | undefined): string {
  return oauth?.clientSecretEnv ?? oauth?.privateKeyEnv ?? 'its variable';
}

function shown(text: string): string {
  return text.replaceAll(/\s+/g, ' ').slice(0, SAID_CHARACTERS).toWellFormed();
}
