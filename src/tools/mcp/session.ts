import type { Client, ClientOptions, Tool as ListedTool, Transport } from '@modelcontextprotocol/client';
import type { Clock } from '../../clock.ts';
import type { Link } from './link.ts';
import { AnyResult, isTooDeep, parseResult } from './results.ts';
import { assertFlatSchemas } from './tool-problem.ts';

/** An open connection. It is not used again once it is lost. */
export interface Session {
  client: Client;
  link: Link;
  /** Questions to people that were declined, the newest last. */
  declined: readonly string[];
  /** Why the session is lost; null while it is not. */
  lostFor: () => string | null;
  /** Marks the session as lost: the server has ended, or no longer knows the session. */
  lose: (why: unknown) => void;
}

interface SessionParts {
  timeoutMs: number;
  clock: Clock;
  onToolsChanged: () => void;
  onLost: (why: string) => void;
}

const PING_MS = 5_000;
const MESSAGE_CHARACTERS = 300;
/** Questions of servers are handed to the caller, who asks people between two turns. */
const NEGOTIATING: ClientOptions = {
  capabilities: { elicitation: { form: {} } },
  versionNegotiation: { mode: 'auto' },
  inputRequired: { autoFulfill: false },
};
const MAX_PAGES = 100;
const MAX_TOOLS = 1_000;

/** Throws the reason if no session can be opened; the link is ended by then. */
export async function openSession(
  link: Link,
  { timeoutMs, clock, onToolsChanged, onLost }: SessionParts,
): Promise<Session> {
  const { Client } = await import('@modelcontextprotocol/client');
  let isOpen = false;
  let ending: string | null = null;
  let flooded: Error | null = null;
  // The version is a constant: no server should behave differently for one.
  const client = new Client({ name: 'troupe', version: '1' }, link.negotiates ? NEGOTIATING : {});
  // Over an older revision the question comes during the call, and nothing says of which call it is part.
  const declined: string[] = [];
  if (link.negotiates)
    client.setRequestHandler('elicitation/create', ({ params }) => {
      declined.push(params.message.slice(0, MESSAGE_CHARACTERS).toWellFormed());
      return { action: 'decline' as const };
    });
  client.setNotificationHandler('notifications/tools/list_changed', onToolsChanged);
  const transport = boundMessages(link.transport, clock, (why) => {
    flooded = why;
    if (isOpen) lose(why);
    else void link.end();
  });
  try {
    await client.connect(transport, { timeout: timeoutMs });
  } catch (error) {
    // Asked before the link is ended: afterwards that would be the explanation.
    const why = link.explain(flooded ?? error) + link.hint();
    await link.end();
    throw new Error(why);
  }
  isOpen = true;
  function lose(why: unknown): void {
    if (ending !== null) return;
    ending = link.explain(why);
    onLost(ending);
  }
  client.onclose = () => lose(new Error('it was closed'));
  if (link.breaksSilently) client.onerror = createWatch(client, lose);
  return { client, link, declined, lostFor: () => ending, lose };
}

/** Checks after each error whether the server still answers, one check at a time. */
function createWatch(client: Client, onGone: (why: unknown) => void): () => void {
  let looking: Promise<void> | null = null;
  return () => {
    // The newest revision has no ping.
    looking ??= (
      client.getDiscoverResult() ? client.discover({ timeout: PING_MS }) : client.ping({ timeout: PING_MS })
    )
      .then(() => undefined, onGone)
      .finally(() => {
        looking = null;
      });
  };
}

/**
 * Reads all pages within the time of one request. `client.listTools` is avoided: it compiles each output schema and
 * then refuses results that do not fit it. Tools are counted before they are validated.
 */
export async function listTools(client: Client, timeoutMs: number): Promise<ListedTool[]> {
  const tools: ListedTool[] = [];
  const signal = AbortSignal.timeout(timeoutMs);
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const request = { method: 'tools/list' as const, params: cursor === undefined ? {} : { cursor } };
    const given = await client.request(request, AnyResult, { timeout: timeoutMs, signal });
    if (Array.isArray(given['tools']) && tools.length + given['tools'].length > MAX_TOOLS)
      throw new Error(`its list has more than ${MAX_TOOLS} tools`);
    assertFlatSchemas(given['tools']);
    const listed = await parseResult('ListToolsResult', given);
    tools.push(...listed.tools);
    cursor = listed.nextCursor;
    if (cursor === undefined) return tools;
  }
  throw new Error(`its list of tools has more than ${MAX_PAGES} pages`);
}

/** Limit of messages per second: responses, notifications and unparsable lines. */
const MAX_MESSAGES = 2_000;
const WINDOW_MS = 1_000;

/**
 * Wraps a transport and counts the server's messages before they are validated. Beyond the limit it passes on nothing
 * more: validating a flood of messages would block everything else.
 */
function boundMessages(inner: Transport, clock: Clock, onFlood: (why: Error) => void): Transport {
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
    send: (message, options) => inner.send(message, options),
    close: () => inner.close(),
    ...(inner.hasPerRequestStream === true && { hasPerRequestStream: true }),
    setProtocolVersion: (version) => inner.setProtocolVersion?.(version),
  };
  return outer;
}
