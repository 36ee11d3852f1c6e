import type { ServerCapabilities } from '@modelcontextprotocol/client';
import type { Clock } from '../../base/clock.ts';
import { tryParse } from '../../events/index.ts';
import type { ToolContext } from '../tool.ts';
import { type Link, type ListedTools, listTools, openSession, type Session } from './session.ts';
import { messageOf, RefusedProbe } from './wire.ts';
import { resultText, AnyResult, isRecord, isTooDeep, withoutNulls, textOf } from './results.ts';
import { type Answered, InputRequired } from './input-required.ts';

/**
 * A server as agents use it: one session shared by all of them, opened on demand and reopened after a loss.
 *
 * C1 At most one session exists at a time; concurrent callers wait for the same one.
 * C2 A session that was lost after an answer is reopened at once. Each further failure doubles the wait.
 * C3 A call is sent once. It is sent again only if the server reported that the call had no effect.
 * C4 Errors and reports are redacted.
 */
export interface Connection {
  /** The server's tools. Throws the reason if the server cannot be used. */
  list(): Promise<ListedTools>;
  /** The capabilities that the server reports. */
  capabilities(): Promise<ServerCapabilities>;
  /** Calls a tool. If people must answer first, the call has had no effect yet. */
  call(params: Record<string, unknown>, context: CallContext): Promise<Answered | InputRequired>;
  /** Sends a request. The result is not validated. */
  request(request: ServerRequest, context: CallContext): Promise<Record<string, unknown>>;
  /** The session was lost or could not be opened, and no request has reached the server since. */
  isLost(): boolean;
  /** Whether the server still offers a tool, by its last list. */
  offers(tool: string): boolean;
  /** Resolves when no process and no session is left. */
  close(): Promise<void>;
}

export interface ServerRequest {
  method:
    | 'tools/call'
    | 'resources/list'
    | 'resources/templates/list'
    | 'resources/read'
    | 'prompts/list'
    | 'prompts/get';
  params: Record<string, unknown>;
}

/** The parts of a tool's context that a call needs. */
export type CallContext = Pick<ToolContext, 'signal' | 'progress'>;

interface ConnectionParts {
  timeoutMs: number;
  createLink: () => Promise<Link>;
  redact: (text: string) => string;
  /** The server's list of tools has changed. */
  onToolsChanged: () => void;
  /** An open session was lost. */
  onLost: (why: string) => void;
  clock: Clock;
}

const FIRST_PAUSE_MS = 500;
export const LONGEST_PAUSE_MS = 30_000;
/** The SDK's own timeout is only a fallback: ours comes first and its message tells more. */
const SPARE_MS = 5_000;
/** A progress report restarts the time limit of a call, up to this many times the limit in all. */
export const MOST_RENEWALS = 10;

/** Pause before a server is tried again, after this many failures in a row. */
export function pauseMs(failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1));
}

export function createConnection(parts: ConnectionParts): Connection {
  const { timeoutMs } = parts;
  const thrownAs = redactedThrow(parts.redact);
  const closing = new AbortController();
  const offered = createOfferedTools(listAgain, { clock: parts.clock, signal: closing.signal });
  const sessions = createSessions({
    ...parts,
    onToolsChanged() {
      offered.changed();
      parts.onToolsChanged();
    },
  });

  const send = createSend(sessions, { timeoutMs, thrownAs });

  async function list(): Promise<ListedTools> {
    const session = await sessions.get().catch(thrownAs((error) => messageOf(error)));
    const listed = await listTools(session, timeoutMs).catch(
      thrownAs((error) => session.lostFor() ?? session.link.explain(error)),
    );
    sessions.answered({ listed: true });
    return listed;
  }

  /** Opens no session: a server that announces changes and then ends would otherwise be restarted forever. */
  async function listAgain(): Promise<readonly unknown[]> {
    const session = await sessions.current();
    if (!session) throw new Error('the session was lost');
    const { tools, problems } = await listTools(session, timeoutMs);
    if (tools.length === 0 && problems.length > 0) throw new Error(problems[0]);
    return tools;
  }

  async function capabilities(): Promise<ServerCapabilities> {
    const { client } = await sessions.get().catch(thrownAs((error) => messageOf(error)));
    return client.getServerCapabilities() ?? {};
  }

  function request(sent: ServerRequest, context: CallContext): Promise<Record<string, unknown>> {
    return send(sent, context, (result) => {
      if (isInputRequired(result))
        throw new Error('its server asks for more first, which is passed on for tools only');
      return isRecord(result) ? result : {};
    });
  }

  function call(params: Record<string, unknown>, context: CallContext): Promise<Answered | InputRequired> {
    return send<Answered | InputRequired>({ method: 'tools/call', params }, context, (result, declined) =>
      isInputRequired(result)
        ? parseInputRequired(result)
        : {
            isError: isRecord(result) && [true, 'true'].includes(result['isError'] as boolean),
            text: [resultText(result), ...declinedText(declined)].filter(Boolean).join('\n'),
          },
    );
  }

  return {
    list,
    capabilities,
    call,
    request,
    isLost: () => sessions.isLost(),
    offers: (tool) => offered.has(tool),
    close() {
      closing.abort();
      return sessions.close();
    },
  };
}

type Send = <T>(
  request: ServerRequest,
  context: CallContext,
  read: (result: unknown, declined: readonly string[]) => T,
) => Promise<T>;

/** Sends a request in the open session. If the server has forgotten that session, sends it once more in a new one (C3). */
function createSend(
  sessions: Sessions,
  { timeoutMs, thrownAs }: { timeoutMs: number; thrownAs: ReturnType<typeof redactedThrow> },
): Send {
  return async function send<T>(
    { method, params }: ServerRequest,
    { signal, progress }: CallContext,
    read: (result: unknown, declined: readonly string[]) => T,
  ): Promise<T> {
    for (let again = true; ; again = false) {
      const { client, link, declined, lostFor, lose } = await sessions
        .get()
        .catch(thrownAs((error) => `its server cannot be reached: ${messageOf(error)}`));
      signal.throwIfAborted();
      const before = declined.length;
      try {
        const given = await client.request({ method, params }, AnyResult, {
          signal,
          timeout: MOST_RENEWALS * timeoutMs + SPARE_MS,
          allowInputRequired: true,
          onprogress: ({ progress: done, total, message: text }) => progress({ done, total, text }),
        });
        sessions.answered();
        return read(link.wire.take(given), declined.slice(before));
      } catch (error) {
        if (again && link.isForgotten(error)) {
          lose(error);
          continue;
        }
        const ending = lostFor();
        return thrownAs(() =>
          ending === null
            ? (link.refusal(error) ?? link.fate(error) ?? messageOf(error))
            : `its server ended during the call (${ending}); whether it had an effect is not known`,
        )(error);
      }
    }
  };
}

interface Sessions {
  /** The open session, or the one that is being opened (C1). */
  get(): Promise<Session>;
  /** The same, but null if there is no session. */
  current(): Promise<Session> | null;
  /** The server has answered, so the next session is opened without a pause (C2). */
  answered(what?: { listed: boolean }): void;
  isLost(): boolean;
  close(): Promise<void>;
}

function createSessions(parts: ConnectionParts): Sessions {
  const { timeoutMs, redact, clock } = parts;
  const closing = new AbortController();
  const links = new Set<Link>();
  let current: Promise<Session> | null = null;
  let openings = 0;
  let isListed = false;
  let isLost = false;
  /** The server does not support the newest revision of the protocol. */
  let isOld = false;

  function get(): Promise<Session> {
    if (current) return current;
    const opening = open(forget);
    function forget(): void {
      if (current === opening) current = null;
    }
    current = opening;
    opening.then(
      () => (isLost = false),
      () => {
        isLost = true;
        forget();
      },
    );
    return opening;
  }

  async function open(forget: () => void): Promise<Session> {
    if (openings > 0) {
      await clock.sleep(pauseMs(openings), closing.signal);
    }
    openings += 1;
    return begin(forget).catch((error: unknown) => {
      if (isOld || !(error instanceof RefusedProbe)) throw error;
      isOld = true;
      return begin(forget);
    });
  }

  async function begin(forget: () => void): Promise<Session> {
    const link = await parts.createLink();
    if (closing.signal.aborted) throw new Error('it is being closed');
    links.add(link);
    return openSession(link, {
      timeoutMs,
      isOld,
      clock,
      onToolsChanged: () => {
        if (isListed) parts.onToolsChanged();
      },
      onLost(why) {
        forget();
        if (closing.signal.aborted) return;
        isLost = true;
        parts.onLost(redact(why));
        void link.end().finally(() => links.delete(link));
      },
    });
  }

  return {
    get,
    current: () => current,
    answered({ listed } = { listed: false }) {
      isListed ||= listed;
      openings = 0;
    },
    isLost: () => isLost,
    async close() {
      closing.abort();
      await Promise.all([...links].map((link) => link.end()));
    },
  };
}

/** Drops the cause, which still contains the secrets. */
function redactedThrow(
  redact: (text: string) => string,
): (words: (error: unknown) => string) => (error: unknown) => never {
  return (words) => (error) => {
    throw new Error(redact(words(error)));
  };
}

/**
 * Tells the model why its call may have ended early. The server does not name the call, so each of several parallel calls is told.
 */
function declinedText(declined: readonly string[]): string[] {
  const [first] = declined;
  if (first === undefined) return [];
  return [
    `[during the call its server asked a person ${JSON.stringify(first)}. Over its revision of the protocol this cannot be passed on, so it was declined]`,
  ];
}

function isInputRequired(result: unknown): boolean {
  return isRecord(result) && result['resultType'] === 'input_required';
}

function parseInputRequired(result: unknown): InputRequired {
  if (isTooDeep(result)) throw new Error('its question has too many levels');
  const parsed = tryParse(InputRequired, withoutNulls(result as Record<string, unknown>));
  if (parsed.success) return parsed.data;
  throw new Error(`its question is not valid: ${parsed.error.issues[0]?.message}`);
}

/** The tools that a server offers, by its last list. */
interface OfferedTools {
  /** True until a list without the tool has been read. */
  has(tool: string): boolean;
  /** Reads the list again after a change. If that fails, the last list stays valid. */
  changed(): void;
}

/** Least time between two reads of the list, ms: a server may announce changes without end. */
const PAUSE_MS = 1_000;

function createOfferedTools(
  list: () => Promise<readonly unknown[]>,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): OfferedTools {
  let names: ReadonlySet<string> | null = null;
  let isReading = false;
  let isStale = false;

  async function read(): Promise<void> {
    isReading = true;
    try {
      while (isStale && !signal.aborted) {
        isStale = false;
        names = new Set((await list()).map((tool) => textOf(Object(tool)['name']) ?? ''));
        await clock.sleep(PAUSE_MS, signal);
      }
    } catch {
      // The connection reports why a server does not answer. The next announcement leads to another read.
    } finally {
      isReading = false;
    }
  }

  return {
    has: (tool) => names?.has(tool) ?? true,
    changed() {
      isStale = true;
      if (!isReading) void read();
    },
  };
}
