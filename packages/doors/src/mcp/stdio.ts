import { once } from 'node:events';
import { ulid } from 'ulid';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { McpServer } from '@modelcontextprotocol/server';
import {
  addressed,
  type Clock,
  ConversationId,
  nobodyAnswers,
  openChat,
  SCOPES,
  type StdioParts,
  type StdioRelay,
} from '../troupe.ts';
import { type McpHost, canAsk, CAPABILITIES, progressOf } from './call-tool.ts';
import { createServer, serveClient } from './server.ts';

/** Serves a client of the Model Context Protocol at stdin and stdout, until it disconnects. */
export async function serveMcp(parts: StdioParts): Promise<void> {
  const host = hostFor(parts);
  await serveUntilTheEnd(() => createServer(host), parts.signal);
}

/** Passes the client's requests on to the server at `url`. */
export async function relayMcp({ url, credential, version, clock, signal }: StdioRelay): Promise<void> {
  const relay = createRelay({ url, credential, version, newId: () => newId(clock) });
  await serveUntilTheEnd(relay.createServer, signal);
  await relay.close();
}

async function serveUntilTheEnd(
  create: Parameters<typeof serveClient>[0],
  signal: AbortSignal,
): Promise<void> {
  const server = serveClient(create, reportError);
  if (!signal.aborted) await once(signal, 'abort');
  await server.close();
}

function newId(clock: Pick<Clock, 'now'>): string {
  return ulid(clock.now()).toLowerCase();
}

function reportError(error: unknown): void {
  console.error('troupe mcp:', error);
}

function hostFor({ troupe, author, clock, version, signal }: StdioParts): McpHost {
  // A client's numbering of requests starts anew with each session.
  const session = newId(clock);
  return {
    troupe,
    scopes: SCOPES,
    clock,
    version,
    ends: signal,
    onError: reportError,
    newConversation: (key) => `mcp-${key ?? newId(clock)}`,
    keyOf: (request) => `${session}-${request}`.replaceAll(/[^A-Za-z0-9._-]/g, '-'),
    async send({ conversation, content, agent, id }) {
      const to = agent === undefined ? undefined : [agent];
      const message = addressed({ author, content, to, id, channel: 'mcp' }, troupe.agents);
      const { event } = await troupe.send(conversation, message);
      if (event.to.length === 0) throw nobodyAnswers();
      return { conversation: ConversationId.parse(conversation), seq: event.seq };
    },
    command: (command) => troupe.command(command, author),
    call: (work) => work(signal),
    changes: ({ conversation, seq }, ends) => openChat(troupe, conversation).follow(seq, ends),
    read: (work) => work(),
  };
}

/** A running server, and the credential of the caller there. */
interface Remote {
  /** URL of `/api/mcp`. */
  url: URL;
  /** Key or token. Default: none. */
  credential?: string | undefined;
  version: string;
  /** Makes a new id for each session. */
  newId: () => string;
}

/** Longer than a tool may wait, ms. */
const TIMEOUT_MS = 660_000;

/**
 * Passes the requests of clients at stdin on to a server. Owns two sessions with it: one for clients that can ask their users
 * questions, and one for others, because a session declares that only once.
 */
function createRelay({ url, credential, version, newId }: Remote) {
  const sessions = new Map<boolean, Promise<Client>>();

  async function connect(canAsk: boolean): Promise<Client> {
    const client = new Client(
      { name: 'troupe-mcp', version },
      {
        versionNegotiation: { mode: { pin: '2026-07-28' } },
        capabilities: canAsk ? { elicitation: { form: {} } } : {},
        // The server's questions are passed on, because the user is at the other end of stdin.
        inputRequired: { autoFulfill: false },
      },
    );
    const headers = {
      'idempotency-key': newId(),
      ...(credential !== undefined && { authorization: `Bearer ${credential}` }),
    };
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
    return client;
  }

  function session(canAsk: boolean): Promise<Client> {
    const open = sessions.get(canAsk) ?? connect(canAsk);
    sessions.set(canAsk, open);
    // A server that cannot be reached now may be available for the next request.
    open.catch(() => sessions.delete(canAsk));
    return open;
  }

  function createServer(): McpServer {
    const mcp = new McpServer({ name: 'troupe', title: 'Troupe', version }, { capabilities: CAPABILITIES });
    passReads(mcp, session);
    passCalls(mcp, session);
    return mcp;
  }

  return {
    createServer,
    async close(): Promise<void> {
      const open = await Promise.allSettled(sessions.values());
      for (const each of open) if (each.status === 'fulfilled') await each.value.close();
    },
  };
}

type SessionOf = (canAsk: boolean) => Promise<Client>;

function passReads({ server }: McpServer, session: SessionOf): void {
  server.setRequestHandler('tools/list', async ({ params }) =>
    (await session(false)).request({ method: 'tools/list', params: { ...params } }),
  );
  server.setRequestHandler('resources/list', async ({ params }) =>
    (await session(false)).request({ method: 'resources/list', params: { ...params } }),
  );
  server.setRequestHandler('resources/templates/list', async ({ params }) =>
    (await session(false)).request({ method: 'resources/templates/list', params: { ...params } }),
  );
  server.setRequestHandler('resources/read', async ({ params }) =>
    (await session(false)).request({ method: 'resources/read', params: { ...params } }),
  );
}

function passCalls(mcp: McpServer, session: SessionOf): void {
  mcp.server.setRequestHandler('tools/call', async ({ params }, context) => {
    const { mcpReq } = context;
    const client = await session(canAsk(mcp, context));
    const { name, arguments: args } = params;
    const requestState = mcpReq.requestState<string>();
    const { inputResponses } = mcpReq;
    const { report, told } = progressOf(context);
    const more = {
      ...(inputResponses && { inputResponses }),
      ...(requestState !== undefined && { requestState }),
    };
    const result = await client.request(
      { method: 'tools/call', params: { name, arguments: args, ...more } },
      {
        allowInputRequired: true,
        signal: mcpReq.signal,
        timeout: TIMEOUT_MS,
        onprogress: ({ message }) => report(message ?? ''),
      },
    );
    await told();
    return result;
  });
}
