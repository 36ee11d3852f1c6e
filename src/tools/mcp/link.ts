import type { Transport } from '@modelcontextprotocol/client';
import type { Clock } from '../../clock.ts';
import { messageOf } from './messages.ts';
import type { HttpServer, McpServer, StdioServer } from './settings.ts';
import { boundedResponse } from '../../net/bounded-response.ts';
import { createStdioTransport, MAX_MESSAGE_BYTES } from './stdio-transport.ts';

/** One transport to a server. It serves a single connection and then ends. */
export interface Link {
  transport: Transport;
  /** A broken stream is reported as an error only: pending requests would wait forever. */
  breaksSilently: boolean;
  /** The server refused a request because it no longer knows the session; the request had no effect. */
  isForgotten(error: unknown): boolean;
  /** Why the connection failed or ended. May contain secrets. */
  explain(error: unknown): string;
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

/** Opens nothing yet: `transport.start` does. */
export function createLink(settings: McpServer, parts: LinkParts): Promise<Link> {
  return 'url' in settings ? httpLink(settings, parts) : stdioLink(settings, parts);
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
    breaksSilently: false,
    isForgotten: () => false,
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

async function boundedFetch(input: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(input, init);
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
  return boundedResponse(response, {
    maxBytes: isStream ? Infinity : MAX_MESSAGE_BYTES,
    ...(isStream && { maxEventBytes: MAX_MESSAGE_BYTES }),
    tooLong: () => new Error(`a message is over the maximum size of ${MAX_MESSAGE_BYTES} bytes`),
  });
}

async function httpLink({ url, headersEnv }: HttpServer, { variables, clock }: LinkParts): Promise<Link> {
  const { SdkHttpError, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const headers = Object.fromEntries(
    Object.entries(headersEnv).map(([header, variable]) => [header, variables[variable] ?? '']),
  );
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers },
    fetch: boundedFetch,
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
  }

  return {
    transport,
    breaksSilently: true,
    // The specification says 404; many servers answer 400.
    isForgotten: (error) =>
      error instanceof SdkHttpError &&
      transport.sessionId !== undefined &&
      (error.status === 404 || error.status === 400),
    explain: (error) => messageOf(error).slice(0, EXPLAIN_CHARACTERS),
    hint: () => '',
    end: () => (ending ??= end()),
  };
}
