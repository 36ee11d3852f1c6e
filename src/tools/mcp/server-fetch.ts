import type { fetch as UndiciFetch } from 'undici';
import { TroupeError } from '../../base/errors.ts';
import { hostOf, portOf, reachRule } from '../../base/net/allow-list.ts';
import { boundedResponse } from '../../base/net/bounded-response.ts';
import { fetchWithinOrigin } from '../../base/net/redirects.ts';
import { assertReachable, openGuardedAgent } from '../../base/net/safe-fetch.ts';
import type { HttpServer } from './settings.ts';
import { MAX_MESSAGE_BYTES } from './stdio-transport.ts';

/**
 * `fetch` for one server, for its messages and its sign-in alike. Invariants:
 * F1 It reaches the origin of the server, that of its issuer, and what `oauth.allow` names: whatever a server or its
 *    metadata say. These two may be private, because the operator wrote them.
 * F2 The headers of the settings go to the origin of the server only.
 * F3 Redirects are followed within an origin only.
 * F4 Every answer is bounded, and every event of a stream.
 */
export interface ServerFetch {
  fetch: (input: string | URL, init?: RequestInit) => Promise<Response>;
  /** Ends all its connections, answered or not. */
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** A stream has a connection to itself and may be silent for long; calls have their own timeouts. */
const STREAMS = { connections: null, headersTimeout: 0, bodyTimeout: 0 };
/** The client gives requests of its sign-in no limit of their own. */
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

/** With its port the entry is exact: it allows private addresses, and no other port. */
function entryOf(url: URL): string {
  const host = hostOf(url);
  return `${host.includes(':') ? `[${host}]` : host}:${portOf(url)}`;
}

function withHeaders(init: RequestInit, added: Readonly<Record<string, string>>): RequestInit {
  const headers = new Headers(init.headers);
  for (const [name, value] of Object.entries(added)) if (!headers.has(name)) headers.set(name, value);
  return { ...init, headers };
}

/** The client takes any other error of a discovery for an answer, and goes on with a guess. */
function asTypeError(thrown: unknown): never {
  throw thrown instanceof TroupeError ? new TypeError(thrown.message, { cause: thrown }) : thrown;
}
