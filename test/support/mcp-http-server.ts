import { randomUUID } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import type { AddressInfo } from 'node:net';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import { createMcpServer } from './mcp-tools.ts';

export interface McpHttpServer extends AsyncDisposable {
  url: string;
  /** Calls, cancellations, and the beginnings and ends of sessions. */
  trace: string[];
  headers: IncomingHttpHeaders[];
  /** Drops all sessions, as a restart does. */
  forget(): void;
}

/** An MCP server over streamable HTTP on 127.0.0.1. */
export async function startMcpHttpServer(at = 0): Promise<McpHttpServer> {
  const trace: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();

  async function begin(): Promise<WebStandardStreamableHTTPServerTransport> {
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => {
        sessions.set(id, transport);
        trace.push('session begins');
      },
      onsessionclosed: (id) => {
        sessions.delete(id);
        trace.push('session ends');
      },
    });
    await createMcpServer({ trace: (line) => trace.push(line) }).connect(transport);
    return transport;
  }

  const server = createServer((request, response) => {
    headers.push(request.headers);
    const id = request.headers['mcp-session-id'];
    const known = typeof id === 'string' ? sessions.get(id) : undefined;
    if (id !== undefined && !known) return void response.writeHead(404).end('no such session');
    void getRequestListener(async (web) => (known ?? (await begin())).handleRequest(web))(request, response);
  });
  await new Promise<void>((resolve) => server.listen(at, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    trace,
    headers,
    forget: () => sessions.clear(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
