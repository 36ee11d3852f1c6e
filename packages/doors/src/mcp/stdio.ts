import { once } from 'node:events';
import { ulid } from 'ulid';
import type { StdioParts, StdioRelay } from '../stdio-parts.ts';
import { addressed, type Clock, ConversationId, nobodyAnswers, openChat, SCOPES } from '../troupe.ts';
import type { McpHost } from './host.ts';
import { createRelay } from './relay.ts';
import { createServer, serveClient } from './server.ts';

/** Serves a client of the Model Context Protocol at stdin and stdout, until it leaves. */
export async function serveMcp(parts: StdioParts): Promise<void> {
  const host = hostFor(parts);
  await serveUntilTheEnd(() => createServer(host), parts.signal);
}

/** Passes it on to the server at `url`. */
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
  // A client numbers its requests from the beginning of its session.
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
