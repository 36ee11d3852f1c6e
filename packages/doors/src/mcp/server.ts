import { createMcpHandler, McpServer, PROTOCOL_VERSION_META_KEY } from '@modelcontextprotocol/server';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { addResources } from './add-resources.ts';
import { addTools } from './add-tools.ts';
import { instructionsFor } from './agent-lines.ts';
import { CAPABILITIES, type McpHost } from './host.ts';

const REJECTED = 'Rejected inbound request';

/** Agents as tools, conversations as resources, for one caller. */
export function createServer(host: McpHost): McpServer {
  const { tools, resources } = CAPABILITIES;
  const server = new McpServer(
    { name: 'troupe', title: 'Troupe', version: host.version },
    {
      instructions: instructionsFor(host.troupe.agents),
      capabilities: { tools, ...(host.scopes.includes('read') && { resources }) },
    },
  );
  addTools(server, host);
  addResources(server, host);
  return server;
}

/** Answers one request of the streamable HTTP transport, without sessions. `body`: its JSON. */
export async function answerMcp(host: McpHost, request: Request, body: unknown): Promise<Response> {
  const pong = pongTo(body);
  if (pong) return Response.json(pong);
  const { fetch } = createMcpHandler(() => createServer(host), {
    // The client is told what is wrong with its request.
    onerror: (error) => void (error.message.startsWith(REJECTED) || host.onError(error)),
  });
  return fetch(request, { parsedBody: body });
}

interface Pong {
  jsonrpc: '2.0';
  id: string | number;
  result: { resultType?: 'complete' };
}

/**
 * Revision 2026-07-28 has no ping, and its clients send one all the same, some of them without what the revision wants of each
 * request. Null: the body is another request.
 */
function pongTo(body: unknown): Pong | null {
  const { method, id, params } = Object(body) as Record<string, unknown>;
  if (method !== 'ping' || (typeof id !== 'string' && typeof id !== 'number')) return null;
  const meta = Object(Object(params)['_meta']) as Record<string, unknown>;
  const isNew = meta[PROTOCOL_VERSION_META_KEY] !== undefined;
  return { jsonrpc: '2.0', id, result: isNew ? { resultType: 'complete' } : {} };
}

/** Serves the client at the other end of stdin and stdout. */
export function serveClient(
  create: () => McpServer,
  onError: (error: unknown) => void,
): { close(): Promise<void> } {
  const transport = new StdioServerTransport();
  const server = serveStdio(create, { transport, onerror: onError });
  const { onmessage } = transport;
  // The package takes the first requests for the revision of the whole connection, and a ping has none.
  transport.onmessage = (message) => {
    const pong = pongTo(message);
    if (pong) transport.send(pong).catch(onError);
    else onmessage?.(message);
  };
  return server;
}
