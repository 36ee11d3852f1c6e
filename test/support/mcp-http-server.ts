import { randomUUID } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import type { AddressInfo } from 'node:net';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import { createMcpServer, TOOLS } from './mcp-tools.ts';

export interface McpHttpServer extends AsyncDisposable {
  url: string;
  /** Calls, cancellations, and the beginnings and ends of sessions. */
  trace: string[];
  headers: IncomingHttpHeaders[];
  /** Drops all sessions, as a restart does. */
  forget(): void;
}

/** Guards a server with OAuth. */
export interface McpGate {
  accepts(authorization: string | undefined): boolean;
  /** The issuer that its metadata name. */
  issuer: string;
  /** Where it says that its metadata are. Default: its own address. */
  metadataUrl?: string;
}

/** An MCP server over streamable HTTP on 127.0.0.1. */
export async function startMcpHttpServer(
  at = 0,
  gate?: McpGate,
  more: readonly string[] = [],
): Promise<McpHttpServer> {
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
    await createMcpServer({
      trace: (line) => trace.push(line),
      tools: [...TOOLS, ...more.map((name) => ({ name, inputSchema: { type: 'object' as const } }))],
    }).connect(transport);
    return transport;
  }

  const server = createServer((request, response) => {
    headers.push(request.headers);
    if (gate && request.url?.startsWith('/.well-known/oauth-protected-resource')) {
      const metadata = { resource: `${origin()}/mcp`, authorization_servers: [gate.issuer] };
      return void response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(metadata));
    }
    if (gate && !gate.accepts(request.headers.authorization)) {
      const at = gate.metadataUrl ?? `${origin()}/.well-known/oauth-protected-resource/mcp`;
      return void response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${at}"` }).end();
    }
    const id = request.headers['mcp-session-id'];
    const known = typeof id === 'string' ? sessions.get(id) : undefined;
    if (id !== undefined && !known) return void response.writeHead(404).end('no such session');
    void getRequestListener(async (web) => (known ?? (await begin())).handleRequest(web))(request, response);
  });
  const origin = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await new Promise<void>((resolve) => server.listen(at, '127.0.0.1', resolve));
  return {
    url: `${origin()}/mcp`,
    trace,
    headers,
    forget: () => sessions.clear(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
