import { authorNamed } from '../client/client.ts';
import { once } from 'node:events';
import { ulid } from 'ulid';
import { SCOPES } from '../../library/access/index.ts';
import { systemClock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import { type Author, ConversationId } from '../../events/index.ts';
import { changesSince } from '../../http/exchange.ts';
import { addressed, nobodyAnswers } from '../../library/asking/ask.ts';
import type { McpHost } from '../../mcp-server/index.ts';
import { loadWith, MCP_SERVER } from '../../base/optional-packages.ts';
import type { Troupe } from '../../library/troupe.ts';
import { type ClientOptions, credentialOf, openTroupe, placeOf } from '../client/connect.ts';
import { onInterrupt } from '../process/terminal.ts';
import { version } from '../process/version.ts';

interface McpOptions extends ClientOptions {
  as?: string;
}

/** An MCP server at stdin and stdout, until its client leaves. The troupe is in this process, or behind a URL. */
export async function mcp(options: McpOptions): Promise<void> {
  // Stdout belongs to the protocol, whatever an agents file prints.
  console.log = console.error;
  const { createRelay, createServer, serveMcp } = await loadWith(
    MCP_SERVER,
    () => import('../../mcp-server/index.ts'),
  );
  const ending = new AbortController();
  const dispose = onInterrupt(() => ending.abort());
  process.stdin.once('close', () => ending.abort());
  const place = placeOf(options, { mayCreate: true });

  async function serveUntilTheEnd(create: Parameters<typeof serveMcp>[0]): Promise<void> {
    const server = serveMcp(create, reportError);
    if (!ending.signal.aborted) await once(ending.signal, 'abort');
    await server.close();
  }

  try {
    if ('url' in place) {
      const url = mcpAddress(place.url);
      const relay = createRelay({ url, credential: credentialOf(process.env), version: version(), newId });
      await serveUntilTheEnd(relay.createServer);
      await relay.close();
      return;
    }
    await using troupe = await openTroupe(place.dir, options, { needs: 'work' });
    const host = hostFor(troupe, authorNamed(options.as), ending.signal);
    await serveUntilTheEnd(() => createServer(host));
  } finally {
    dispose();
  }
}

function mcpAddress(url: string): URL {
  if (!URL.canParse(url)) throw new TroupeError('config_invalid', `"${url}" is not a URL`, { url });
  return new URL(`${url.replace(/(?<!\/)\/+$/, '')}/api/mcp`);
}

function newId(): string {
  return ulid().toLowerCase();
}

function reportError(error: unknown): void {
  console.error('troupe mcp:', error);
}

function hostFor(troupe: Troupe, author: Author, ends: AbortSignal): McpHost {
  // A client numbers its requests from the beginning of its session.
  const session = newId();
  return {
    troupe,
    scopes: SCOPES,
    clock: systemClock,
    version: version(),
    ends,
    onError: reportError,
    newConversation: (key) => `mcp-${key ?? newId()}`,
    keyOf: (request) => `${session}-${request}`.replaceAll(/[^A-Za-z0-9._-]/g, '-'),
    async send({ conversation, content, agent, id }) {
      const to = agent === undefined ? undefined : [agent];
      const message = addressed({ author, content, to, id, channel: 'mcp' }, troupe.agents);
      const { event } = await troupe.send(conversation, message);
      if (event.to.length === 0) throw nobodyAnswers();
      return { conversation: ConversationId.parse(conversation), seq: event.seq };
    },
    command: (command) => troupe.command(command, author),
    call: (work) => work(ends),
    changes: (id, signal) => changesSince(troupe, id, signal),
    read: (work) => work(),
  };
}
