import type { OAuthClientProvider, Transport } from '@modelcontextprotocol/client';
import type { Clock } from '../../clock.ts';
import { messageOf } from './messages.ts';
import type { HttpServer, McpServer, StdioServer } from './settings.ts';
import { openServerFetch } from './server-fetch.ts';
import { createSignIn, signInProblem } from './sign-in.ts';
import { createStdioTransport } from './stdio-transport.ts';

/** One transport to a server. It serves a single connection and then ends. */
export interface Link {
  transport: Transport;
  /** The newest revision of the protocol is tried first. Over stdio that could end an old server. */
  negotiates: boolean;
  /** A broken stream is reported as an error only: pending requests would wait forever. */
  breaksSilently: boolean;
  /** The server refused a request because it no longer knows the session; the request had no effect. */
  isForgotten(error: unknown): boolean;
  /** Why the connection failed or ended. May contain secrets. */
  explain(error: unknown): string;
  /** What is wrong with the sign-in, or with an address that was not reached; null for any other error. */
  refusal(error: unknown): string | null;
  /** What may have kept the server from starting; '' if that is not known. */
  hint(): string;
  /** Resolves when nothing of the link is left. May be called again. */
  end(): Promise<void>;
}

/** Limit of an explanation: an HTML page or a stack trace is not a message. */
const EXPLAIN_CHARACTERS = 300;
/** A server that does not answer must not delay the end of this process. */
const FAREWELL_MS = 1_000;

interface LinkParts {
  /** Values of the variables that the settings name. */
  variables: Readonly<Record<string, string>>;
  clock: Clock;
}

/** Makes links to one server. One opens nothing yet: `transport.start` does. All share one sign-in. */
export function linksTo(settings: McpServer, parts: LinkParts): () => Promise<Link> {
  if (!('url' in settings)) return () => stdioLink(settings, parts);
  const { oauth } = settings;
  let signingIn: Promise<OAuthClientProvider> | null = null;
  return async () =>
    httpLink(settings, parts, oauth && (await (signingIn ??= createSignIn(oauth, parts.variables))));
}

async function stdioLink(
  { command, args, cwd, env: passed }: StdioServer,
  { variables, clock }: LinkParts,
): Promise<Link> {
  const { deserializeMessage } = await import('@modelcontextprotocol/client');
  const { PATH, HOME } = process.env;
  const env = { ...(PATH !== undefined && { PATH }), ...(HOME !== undefined && { HOME }), ...variables };
  const transport = createStdioTransport(
    { command, args, cwd, env },
    { clock, deserialize: deserializeMessage },
  );
  return {
    transport,
    negotiates: false,
    breaksSilently: false,
    isForgotten: () => false,
    refusal: () => null,
    explain: (error) =>
      [transport.ending() ?? messageOf(error), transport.lastLine().slice(-EXPLAIN_CHARACTERS)]
        .filter(Boolean)
        .join(': '),
    hint: () => (transport.hasExited() ? environmentHint(passed) : ''),
    end: () => transport.close(),
  };
}

/** A missing key is the most frequent reason of a server that ends at its start. */
function environmentHint(passed: readonly string[]): string {
  const names = ['PATH', 'HOME', ...passed].join(', ');
  return `. Of the environment it gets only ${names}: list what else it needs in its field "env"`;
}

/**
 * A server chooses the delay before an ended stream is reopened, and it may choose zero: this is the minimum between
 * two.
 */
const REOPEN_MS = 1_000;

/** The first request only tries the revision of the protocol: what failed is the connection. */
function withoutProbe(error: unknown): unknown {
  const isOfProbe = error instanceof Error && error.message.startsWith('Version negotiation');
  return isOfProbe && error.cause instanceof Error ? error.cause : error;
}

async function httpLink(
  settings: HttpServer,
  { variables, clock }: LinkParts,
  authProvider: OAuthClientProvider | undefined,
): Promise<Link> {
  const { SdkHttpError, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const { url, headersEnv } = settings;
  const headers = Object.fromEntries(
    Object.entries(headersEnv).map(([header, variable]) => [header, variables[variable] ?? '']),
  );
  const guarded = openServerFetch(settings, headers);
  const refusal = await signInProblem(settings);
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch: guarded.fetch,
    ...(authProvider && { authProvider }),
    reconnectionScheduler: (reconnect, delay) => {
      const cancelling = new AbortController();
      void clock.sleep(Math.max(delay, REOPEN_MS), cancelling.signal).then(() => {
        if (!cancelling.signal.aborted) reconnect();
      });
      return () => cancelling.abort();
    },
  });
  let ending: Promise<void> | null = null;

  async function end(): Promise<void> {
    const farewell = transport.terminateSession().catch(() => undefined);
    await Promise.race([farewell, clock.sleep(FAREWELL_MS)]);
    await transport.close();
    await guarded.close();
  }

  return {
    transport,
    negotiates: true,
    breaksSilently: true,
    // The specification says 404; many servers answer 400.
    isForgotten: (error) =>
      error instanceof SdkHttpError &&
      transport.sessionId !== undefined &&
      (error.status === 404 || error.status === 400),
    refusal,
    explain: (error) => refusal(error) ?? messageOf(withoutProbe(error)).slice(0, EXPLAIN_CHARACTERS),
    hint: () => '',
    end: () => (ending ??= end()),
  };
}
