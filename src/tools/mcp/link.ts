import type { OAuthClientProvider, Transport } from '@modelcontextprotocol/client';
import type { Clock } from '../../base/clock.ts';
import { isOfProbe, messageOf, createWire, type Wire } from './wire.ts';
import { readAnswers, openServerFetch, createSignIn, signInProblem } from './http-transport.ts';
import type { HttpServer, McpServer, StdioServer } from './settings.ts';
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
  /** What is read and written. */
  wire: Wire;
  /** It failed at the newest revision of the protocol alone: an older one may work. */
  isOld(error: unknown): boolean;
  /** The server has answered, with an error. */
  isAnswer(error: unknown): boolean;
  /** What is known of a request that failed without an answer; null if the server gave one. May contain secrets. */
  fate(error: unknown): string | null;
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

function stdioLink(
  { command, args, cwd, env: passed }: StdioServer,
  { variables, clock }: LinkParts,
): Promise<Link> {
  const { PATH, HOME } = process.env;
  const env = { ...(PATH !== undefined && { PATH }), ...(HOME !== undefined && { HOME }), ...variables };
  const wire = createWire();
  const transport = createStdioTransport({ command, args, cwd, env }, { clock, wire });
  return Promise.resolve({
    transport,
    wire,
    isOld: () => false,
    // A process that ends is noticed by its session.
    fate: () => null,
    isAnswer: () => false,
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
  });
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

/** Servers say that they do not know a session. */
const SESSION_GONE =
  /\bsession\b[^.]{0,40}\b(?:not found|expired|invalid|unknown|terminated|closed|does not exist)|\b(?:invalid|unknown|expired|no valid|no such|missing)\b[^.]{0,20}\bsession\b/i;
/** Nothing was sent: no connection was made. */
const UNREACHED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);
const UNKNOWN_EFFECT = '; whether it had an effect is not known';

function isUnreached(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause)
    if ('code' in at && UNREACHED.has(String(at.code))) return true;
  return false;
}

/** The first request only tries the revision of the protocol: what failed is the connection. */
function withoutProbe(error: unknown): unknown {
  return isOfProbe(error) && error.cause instanceof Error ? error.cause : error;
}

async function httpLink(
  settings: HttpServer,
  { variables, clock }: LinkParts,
  authProvider: OAuthClientProvider | undefined,
): Promise<Link> {
  const { ProtocolError, SdkHttpError, StreamableHTTPClientTransport } =
    await import('@modelcontextprotocol/client');
  const { url, headersEnv } = settings;
  const headers = Object.fromEntries(
    Object.entries(headersEnv).map(([header, variable]) => [header, variables[variable] ?? '']),
  );
  const guarded = openServerFetch(settings, headers);
  const refusal = await signInProblem(settings);
  const wire = createWire();
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch: readAnswers(guarded.fetch, wire),
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

  function isHttp(error: unknown): error is InstanceType<typeof SdkHttpError> {
    return error instanceof SdkHttpError;
  }

  return {
    transport,
    wire,
    negotiates: true,
    breaksSilently: true,
    // The specification says 404; many servers answer 400. Others say it in words, with any status.
    isForgotten: (error) =>
      transport.sessionId !== undefined &&
      ((isHttp(error) && (error.status === 404 || error.status === 400)) ||
        ((isHttp(error) || error instanceof ProtocolError) &&
          SESSION_GONE.test(error.message.slice(0, 500)))),
    isOld(failed) {
      if (!isOfProbe(failed) || settings.oauth) return false;
      const error = withoutProbe(failed);
      const isRefused = isHttp(error) && error.status >= 400 && error.status < 500;
      return !isRefused && refusal(error) === null && !isUnreached(error);
    },
    isAnswer: (error) => error instanceof ProtocolError,
    fate(error) {
      if (error instanceof ProtocolError) return null;
      if (isUnreached(error)) return `its server cannot be reached: ${messageOf(error)}`;
      const isServers = isHttp(error) ? error.status >= 500 : error instanceof TypeError;
      return isServers ? `${messageOf(error).slice(0, EXPLAIN_CHARACTERS)}${UNKNOWN_EFFECT}` : null;
    },
    refusal,
    explain(failed) {
      const error = withoutProbe(failed);
      const status = isHttp(error) ? `it answered with HTTP ${error.status}: ` : '';
      return refusal(failed) ?? `${status}${messageOf(error)}`.slice(0, EXPLAIN_CHARACTERS);
    },
    hint: () => '',
    end: () => (ending ??= end()),
  };
}
