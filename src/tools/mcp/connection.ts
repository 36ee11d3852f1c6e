import type { CallToolResult, Tool as ListedTool } from '@modelcontextprotocol/sdk/types.js';
import type { Clock } from '../../clock.ts';
import type { Link } from './link.ts';
import { messageOf } from './messages.ts';
import { listTools, openSession, type Session } from './session.ts';

/**
 * A server as agents use it: one session for all of them, opened when it is needed and again after it was lost.
 *
 * C1 At most one session at a time; everybody who needs one meanwhile waits for the same.
 * C2 After an answer a session is opened at once; each further time without one waits longer.
 * C3 A call is sent once. It is sent again only where the server said that it did nothing with it.
 * C4 What is thrown or told is redacted.
 */
export interface Connection {
  list(): Promise<ListedTool[]>;
  call(tool: string, args: Record<string, unknown>, signal: AbortSignal): Promise<CallToolResult>;
  /** Resolves when no process and no session is left. */
  close(): Promise<void>;
}

export interface ConnectionParts {
  timeoutMs: number;
  createLink: () => Promise<Link>;
  redact: (text: string) => string;
  /** The server has other tools now than it listed. */
  onToolsChanged: () => void;
  /** A session that was open is not any more. */
  onLost: (why: string) => void;
  clock: Clock;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
/** The SDK's own deadline only takes over where ours, which says more, has failed. */
const SPARE_MS = 5_000;
/** Of one result. */
const MAX_PARTS = 1_000;

export function createConnection(parts: ConnectionParts): Connection {
  const { timeoutMs, redact, clock } = parts;
  const closing = new AbortController();
  const links = new Set<Link>();
  let current: Promise<Session> | null = null;
  let openings = 0;
  let isListed = false;

  function session(): Promise<Session> {
    if (current) return current;
    const opening = open(forget);
    function forget(): void {
      if (current === opening) current = null;
    }
    current = opening;
    opening.catch(forget);
    return opening;
  }

  async function open(forget: () => void): Promise<Session> {
    if (openings > 0) {
      await clock.sleep(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (openings - 1)), closing.signal);
    }
    openings += 1;
    const link = await parts.createLink();
    if (closing.signal.aborted) throw new Error('it is being closed');
    links.add(link);
    return openSession(link, {
      timeoutMs,
      clock,
      onToolsChanged: () => {
        if (isListed) parts.onToolsChanged();
      },
      onLost(why) {
        forget();
        if (closing.signal.aborted) return;
        parts.onLost(redact(why));
        void link.end().finally(() => links.delete(link));
      },
    });
  }

  async function list(): Promise<ListedTool[]> {
    const { client, link } = await session().catch(thrownAs((error) => messageOf(error)));
    const tools = await listTools(client, timeoutMs).catch(thrownAs((error) => link.explain(error)));
    isListed = true;
    openings = 0;
    return tools;
  }

  async function call(
    tool: string,
    args: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<CallToolResult> {
    const { CallToolResultSchema, ResultSchema } = await import('@modelcontextprotocol/sdk/types.js');
    const request = { method: 'tools/call' as const, params: { name: tool, arguments: args } };
    for (let again = true; ; again = false) {
      const { client, link, lostFor, lose } = await session().catch(
        thrownAs((error) => `its server cannot be reached: ${messageOf(error)}`),
      );
      signal.throwIfAborted();
      try {
        const result = await withSignal(signal, (own) =>
          client.request(request, ResultSchema, { signal: own, timeout: timeoutMs + SPARE_MS }),
        );
        openings = 0;
        return CallToolResultSchema.parse(firstParts(result));
      } catch (error) {
        if (again && link.isForgotten(error)) {
          lose(error);
          continue;
        }
        const ending = lostFor();
        return thrownAs(() =>
          ending === null
            ? messageOf(error)
            : `its server ended during the call (${ending}); whether it had an effect is not known`,
        )(error);
      }
    }
  }

  /** Without the cause, which still says what was redacted. */
  function thrownAs(words: (error: unknown) => string): (error: unknown) => never {
    return (error) => {
      throw new Error(redact(words(error)));
    };
  }

  async function close(): Promise<void> {
    closing.abort();
    await Promise.all([...links].map((link) => link.end()));
  }

  return { list, call, close };
}

/** Each part is checked, which takes thousands of times what its bytes take. */
function firstParts(result: Record<string, unknown>): Record<string, unknown> {
  const { content } = result;
  if (!Array.isArray(content) || content.length <= MAX_PARTS) return result;
  const left = { type: 'text', text: `[${content.length - MAX_PARTS} more parts: not shown]` };
  return { ...result, content: [...(content.slice(0, MAX_PARTS) as unknown[]), left] };
}

/** The SDK never takes its listener from a signal: on one that lives on, it would cancel calls that ended long ago. */
async function withSignal<T>(signal: AbortSignal, run: (own: AbortSignal) => Promise<T>): Promise<T> {
  const own = new AbortController();
  const abort = () => own.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await run(own.signal);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
