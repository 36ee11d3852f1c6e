import { createMcpHandler, McpServer, PROTOCOL_VERSION_META_KEY } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { addResources } from './add-resources.ts';
import { addTools } from './add-tools.ts';
import { instructionsFor } from '../doors/mcp/agent-lines.ts';
import type { McpHost } from './host.ts';

export type { McpHost, Said } from './host.ts';
export { createRelay } from './relay.ts';

const REJECTED = 'Rejected inbound request';

/** Agents as tools, conversations as resources, for one caller. */
export function createServer(host: McpHost): McpServer {
  const server = new McpServer(
    { name: 'troupe', title: 'Troupe', version: host.version },
    { instructions: instructionsFor(host.troupe.agents), capabilities: { tools: { listChanged: false } } },
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

/** Revision 2026-07-28 has no ping, and its clients keep connections alive with one. Null: the body is another request. */
function pongTo(body: unknown): object | null {
  const { method, id, params } = Object(body) as Record<string, unknown>;
  const meta = Object(Object(params)['_meta']) as Record<string, unknown>;
  if (method !== 'ping' || id === undefined || meta[PROTOCOL_VERSION_META_KEY] === undefined) return null;
  return { jsonrpc: '2.0', id, result: { resultType: 'complete' } };
}

/** Serves the client at the other end of stdin and stdout. */
export function serveMcp(
  create: () => McpServer,
  onError: (error: unknown) => void,
): { close(): Promise<void> } {
  return serveStdio(create, { onerror: onError });
}
