import type { Client, ClientOptions, Transport, OAuthClientProvider } from '@modelcontextprotocol/client';
import type { Clock } from '../../base/clock.ts';
import { messageOf, RefusedProbe, type Wire, isOfProbe, createWire } from './wire.ts';
import { AnyResult, cursorOf, isRecord, isTooDeep } from './results.ts';
import { readAnswers, openServerFetch, createSignIn, signInProblem } from './http-transport.ts';
import type { HttpServer, McpServer, StdioServer } from './settings.ts';
import { createStdioTransport } from './stdio-transport.ts';

/** An open session with a server. Once it is lost, it is not used again. */
export interface Session {
  client: Client;
  link: Link;
  /** Questions to people that were declined, newest last. */
  declined: readonly string[];
  /** Why the session is lost; null while it is usable. */
  lostFor: () => string | null;
  /** Marks the session as lost: the server has ended, or no longer knows the session. */
  lose: (why: unknown) => void;
}

interface SessionParts {
  timeoutMs: number;
  /** The server is known not to support the newest revision of the protocol. */
  isOld: boolean;
  clock: Clock;
  onToolsChanged: () => void;
  onLost: (why: string) => void;
}

const PING_MS = 5_000;
const MESSAGE_CHARACTERS = 300;
/** Longest wait for an answer to the newest revision, ms. The rest of the time limit is left for an older one. */
const PROBE_MS = 10_000;

function optionsFor({ negotiates }: Link, { timeoutMs, isOld }: SessionParts): ClientOptions {
  if (!negotiates) return {};
  const capabilities = { elicitation: { form: {} } };
  if (isOld) return { capabilities, versionNegotiation: { mode: 'legacy' } };
  return {
    capabilities,
    versionNegotiation: { mode: 'auto', probe: { timeoutMs: Math.min(PROBE_MS, timeoutMs / 2) } },
    // The caller gets the servers' questions, and asks people between two turns.
    inputRequired: { autoFulfill: false },
  };
}
const MAX_PAGES = 100;
const MAX_TOOLS = 1_000;

/** Throws the reason if no session can be opened; the link is then closed. */
export async function openSession(link: Link, parts: SessionParts): Promise<Session> {
  const { timeoutMs, clock, onToolsChanged, onLost } = parts;
  const { Client } = await import('@modelcontextprotocol/client');
  let isOpen = false;
  let ending: string | null = null;
  let flooded: Error | null = null;
  // A constant version, so that no server behaves differently after an update of Troupe.
  const client = new Client({ name: 'troupe', version: '1' }, optionsFor(link, parts));
  // In an older revision the question comes during the call, and does not name the call that it belongs to.
  const declined: string[] = [];
  if (link.negotiates)
    client.setRequestHandler('elicitation/create', ({ params }) => {
      declined.push(params.message.slice(0, MESSAGE_CHARACTERS).toWellFormed());
      return { action: 'decline' as const };
    });
  client.setNotificationHandler('notifications/tools/list_changed', onToolsChanged);
  const transport = boundMessages(link, clock, (why) => {
    flooded = why;
    if (isOpen) lose(why);
    else void link.end();
  });
  try {
    await client.connect(transport, { timeout: timeoutMs });
  } catch (error) {
    // Explained before the link is ended, because afterwards the end itself would be the explanation.
    const why = flooded === null ? link.explain(error) + link.hint() : messageOf(flooded);
    const isOld = link.isOld(error);
    await link.end();
    throw isOld ? new RefusedProbe(why) : new Error(why);
  }
  isOpen = true;
  function lose(why: unknown): void {
    if (ending !== null) return;
    ending = link.explain(why);
    onLost(ending);
  }
  client.onclose = () => lose(new Error('it was closed'));
  if (link.breaksSilently) client.onerror = createWatch({ client, link }, lose);
  return { client, link, declined, lostFor: () => ending, lose };
}

/** Checks after each error whether the server still answers, one check at a time. */
function createWatch(
  { client, link }: Pick<Session, 'client' | 'link'>,
  onGone: (why: unknown) => void,
): () => void {
  let looking: Promise<void> | null = null;
  return () => {
    // The newest revision has no ping.
    looking ??= (
      client.getDiscoverResult() ? client.discover({ timeout: PING_MS }) : client.ping({ timeout: PING_MS })
    )
      // A server that refuses a ping still answers.
      .catch((error: unknown) => link.isAnswer(error) || onGone(error))
      .then(() => undefined)
      .finally(() => {
        looking = null;
      });
  };
}

/** A list of tools as it was sent. `problems`: why it may be incomplete. */
export interface ListedTools {
  tools: readonly unknown[];
  problems: readonly string[];
}

/** Reads all pages, each within the time of one request. Pages that were read are kept, whatever the server answers afterwards. */
export async function listTools({ client, link }: Session, timeoutMs: number): Promise<ListedTools> {
  const tools: unknown[] = [];
  const problems: string[] = [];
  const cursors = new Set<string>();
  const signal = AbortSignal.timeout(timeoutMs);
  let cursor: string | undefined;
  do {
    const page = await listPage({ client, link }, cursor, { timeout: timeoutMs, signal });
    if ('problem' in page) {
      // A server that has only resources does not know this method.
      if (tools.length > 0 || client.getServerCapabilities()?.tools) problems.push(page.problem);
      break;
    }
    tools.push(...page.tools.slice(0, MAX_TOOLS - tools.length));
    if (
      page.tools.length > 0 &&
      tools.length === MAX_TOOLS &&
      (page.tools.length > MAX_TOOLS || page.next !== undefined)
    )
      problems.push(`its list has more than ${MAX_TOOLS} tools: the first are offered`);
    if (tools.length === MAX_TOOLS) break;
    cursor = page.next;
    if (cursor === undefined) break;
    if (cursors.has(cursor)) problems.push('its list repeats a cursor: what it lists before is offered');
    else if (cursors.size === MAX_PAGES - 1)
      problems.push(`its list has more than ${MAX_PAGES} pages: the first are offered`);
    cursors.add(cursor);
  } while (problems.length === 0);
  return { tools, problems };
}

type Page = { tools: readonly unknown[]; next: string | undefined } | { problem: string };

/** `client.listTools` is not used, because it compiles each output schema and then refuses results that do not fit. */
async function listPage(
  { client, link }: Pick<Session, 'client' | 'link'>,
  cursor: string | undefined,
  options: { timeout: number; signal: AbortSignal },
): Promise<Page> {
  const { ProtocolError } = await import('@modelcontextprotocol/client');
  const request = { method: 'tools/list' as const, params: cursor === undefined ? {} : { cursor } };
  try {
    const given = link.wire.take(await client.request(request, AnyResult, options));
    const { tools, nextCursor } = isRecord(given) ? given : {};
    if (!Array.isArray(tools)) return { problem: 'its list of tools is no list' };
    return { tools, next: cursorOf(nextCursor) };
  } catch (error) {
    // Without an answer the server is away; with an error as answer it is there, but lists no tools.
    if (!(error instanceof ProtocolError)) throw error;
    return { problem: `its list of tools cannot be read: ${messageOf(error)}` };
  }
}

/** Most messages per second: responses, notifications and unparsable lines. */
const MAX_MESSAGES = 2_000;
const WINDOW_MS = 1_000;

/**
 * Wraps a transport and counts the server's messages before they are validated. Beyond the limit no message is passed on,
 * because validating a flood of messages would block everything else. A request whose stream ends without an answer fails.
 */
function boundMessages(
  { transport: inner, wire }: Pick<Link, 'transport' | 'wire'>,
  clock: Clock,
  onFlood: (why: Error) => void,
): Transport {
  let since = clock.monotonic();
  let count = 0;
  let isOver = false;

  function isCounted(): boolean {
    if (isOver) return false;
    const now = clock.monotonic();
    if (now - since >= WINDOW_MS) [since, count] = [now, 0];
    count += 1;
    if (count <= MAX_MESSAGES) return true;
    isOver = true;
    onFlood(new Error(`it sent more than ${MAX_MESSAGES} messages in a second`));
    return false;
  }

  const outer: Transport = {
    start() {
      inner.onmessage = (message, extra) => {
        if (!isCounted()) return;
        const { params } = (message ?? {}) as { params?: unknown };
        if (isTooDeep(params)) outer.onerror?.(new Error('a message has too many levels'));
        else outer.onmessage?.(message, extra);
      };
      inner.onerror = (error) => {
        if (isCounted()) outer.onerror?.(error);
      };
      inner.onclose = () => outer.onclose?.();
      return inner.start();
    },
    send: (message, options) => sendNoted(message, options, { inner, outer, wire }),
    close: () => inner.close(),
    ...(inner.hasPerRequestStream === true && { hasPerRequestStream: true }),
    setProtocolVersion: (version) => inner.setProtocolVersion?.(version),
  };
  return outer;
}

async function sendNoted(
  message: Parameters<Transport['send']>[0],
  options: Parameters<Transport['send']>[1],
  { inner, outer, wire }: { inner: Transport; outer: Transport; wire: Wire },
): Promise<void> {
  wire.sent(message);
  if (!('method' in message && 'id' in message)) return inner.send(message, options);
  const { id } = message;
  options?.requestSignal?.addEventListener('abort', () => wire.forget(id), { once: true });
  const onRequestStreamEnd = () => {
    const failed = wire.fail(id, 'the stream of its answer ended during the call, without an answer');
    if (failed) outer.onmessage?.(failed);
    options?.onRequestStreamEnd?.();
  };
  try {
    await inner.send(message, { ...options, onRequestStreamEnd });
  } catch (error) {
    wire.forget(id);
    throw error;
  }
}

/** One transport to a server. It serves a single connection and then ends. */
export interface Link {
  transport: Transport;
  /** The newest revision of the protocol is tried first. Over stdio it is not, because an old server might exit. */
  negotiates: boolean;
  /** A broken stream is reported only as an error: pending requests would wait forever. */
  breaksSilently: boolean;
  /** The server refused a request because it no longer knows the session; the request had no effect. */
  isForgotten(error: unknown): boolean;
  /** Reads and writes the messages. */
  wire: Wire;
  /** The request failed only because of the newest revision of the protocol: an older one may work. */
  isOld(error: unknown): boolean;
  /** The error is an answer of the server. */
  isAnswer(error: unknown): boolean;
  /** What is known of a request that failed without an answer; null if the server answered. May contain secrets. */
  fate(error: unknown): string | null;
  /** Why the connection failed or ended. May contain secrets. */
  explain(error: unknown): string;
  /** What is wrong with the sign-in, or with a URL that was not reached; null for any other error. */
  refusal(error: unknown): string | null;
  /** What may have kept the server from starting; '' if unknown. */
  hint(): string;
  /** Resolves when all of the link has ended. May be called again. */
  end(): Promise<void>;
}

/** Most characters of an explanation: servers may send an HTML page or a stack trace. */
const EXPLAIN_CHARACTERS = 300;
/** Longest wait for a server at the end of this process, ms. */
const FAREWELL_MS = 1_000;

interface LinkParts {
  /** Values of the variables that the settings name. */
  variables: Readonly<Record<string, string>>;
  clock: Clock;
}

/** Returns a factory of links to one server. A new link opens nothing until `transport.start`. All links share one sign-in. */
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
    // The session notices when the process ends.
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

/** The most frequent reason why a server ends at its start is a missing key. */
function environmentHint(passed: readonly string[]): string {
  const names = ['PATH', 'HOME', ...passed].join(', ');
  return `. Of the environment it gets only ${names}: list what else it needs in its field "env"`;
}

/** Least delay before an ended stream is reopened, ms. The server chooses the delay, and may choose zero. */
const REOPEN_MS = 1_000;

/** What servers say when they do not know a session. */
const SESSION_GONE =
  /\bsession\b[^.]{0,40}\b(?:not found|expired|invalid|unknown|terminated|closed|does not exist)|\b(?:invalid|unknown|expired|no valid|no such|missing)\b[^.]{0,20}\bsession\b/i;
/** Error codes with which nothing was sent, because no connection was made. */
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

/** The first request only tests the revision of the protocol, so the error of the connection is its cause. */
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
    // The specification requires 404; many servers answer 400. Others say it in the message, with any status.
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
