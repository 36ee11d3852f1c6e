import { existsSync, readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { tempDir } from '../store/temp-dir.ts';

const SCRIPT = join(import.meta.dirname, 'odd-mcp-server.ts');

/** A list of one tool, as a server sends it. */
export const LOOK = '{"name":"look","description":"Looks.","inputSchema":{"type":"object","properties":{}}}';

/** The texts that a server answers methods with: see `odd-mcp-server.ts`. */
export function oddStdio(answers: Readonly<Record<string, string>>) {
  const file = join(tempDir(), 'sent');
  const all = { 'tools/list': `{"tools":[${LOOK}]}`, ...answers };
  return {
    server: { command: process.execPath, args: [SCRIPT, file, JSON.stringify(all)] },
    /** The lines that it was sent. */
    sent: () => (existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : []),
  };
}

export interface OddRequest {
  /** The JSON-RPC method; of other requests that of HTTP. */
  method: string;
  /** Id of the request, as JSON. */
  id: string;
  text: string;
  headers: IncomingHttpHeaders;
}

export interface OddHttp extends AsyncDisposable {
  url: string;
  requests: OddRequest[];
}

type Answer = (request: OddRequest, response: ServerResponse) => boolean | void;

/** An MCP server over real HTTP. `answer` gives its odd answers; what it returns `false` for is answered as usual. */
export async function startOddHttp(answer: Answer): Promise<OddHttp> {
  const requests: OddRequest[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (piece: string) => (text += piece));
    request.on('end', () => {
      const message = (text === '' ? {} : JSON.parse(text)) as { id?: unknown; method?: string };
      const method = message.method ?? (text === '' ? (request.method ?? '') : 'answer');
      const it = { method, id: JSON.stringify(message.id) ?? '', text, headers: request.headers };
      requests.push(it);
      if (answer(it, response) === false) usual(it, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const USUAL: Readonly<Record<string, string>> = {
  initialize: `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}`,
  ping: '{}',
  'tools/list': `{"tools":[${LOOK}]}`,
  'tools/call': '{"content":[{"type":"text","text":"sun"}]}',
};

export function usual({ method, id }: OddRequest, response: ServerResponse): void {
  if (method === 'GET' || method === 'DELETE') return void response.writeHead(405).end();
  if (id === '') return void response.writeHead(202).end();
  const result = USUAL[method];
  const rest = result ? `"result":${result}` : '"error":{"code":-32601,"message":"Method not found"}';
  json(
    response,
    `{"jsonrpc":"2.0","id":${id},${rest}}`,
    method === 'initialize' ? { 'mcp-session-id': 's1' } : {},
  );
}

export function json(response: ServerResponse, text: string, headers: Record<string, string> = {}): void {
  response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(text);
}

/** `text` as an event of a stream, which stays open. */
export function event(response: ServerResponse, text: string): void {
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(text === '' ? ': hello\n\n' : `event: message\ndata: ${text}\n\n`);
}
