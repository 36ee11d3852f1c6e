import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import {
  createMcpHandler,
  inputRequired,
  type InputResponses,
  Server,
  type CallToolResult,
} from '@modelcontextprotocol/server';

export interface McpModernServer extends AsyncDisposable {
  url: string;
  /** What a call brought along: its arguments, the answers, and the state. */
  calls: { args: unknown; responses: unknown; state: string | undefined }[];
  /** JSON-RPC methods, in order. */
  methods: string[];
}

const STATE = 'state of the server';

/** An MCP server of the newest revision, whose tool `deploy` first asks people whether, and then where. */
export async function startMcpModernServer(): Promise<McpModernServer> {
  const calls: McpModernServer['calls'] = [];
  const methods: string[] = [];

  function build(): Server {
    const server = new Server({ name: 'modern', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/list', () => ({
      tools: [
        { name: 'deploy', inputSchema: { type: 'object' as const } },
        { name: 'sample', inputSchema: { type: 'object' as const } },
        { name: 'add', inputSchema: { type: 'object' as const } },
      ],
    }));
    server.setRequestHandler('tools/call', ({ params }, { mcpReq }) => {
      const responses = mcpReq.inputResponses as InputResponses | undefined;
      const state = mcpReq.requestState<string>();
      calls.push({ args: params.arguments, responses, state });
      if (params.name === 'add') return text('added');
      if (params.name === 'sample')
        return inputRequired({
          inputRequests: {
            thought: inputRequired.createMessage({ messages: [], maxTokens: 10 }),
          },
        });
      const sure = responses?.['sure'] as Answer | undefined;
      if (sure && sure.action !== 'accept') return text(`not deployed: ${sure.action}`);
      if (sure)
        return inputRequired({
          inputRequests: {
            where: inputRequired.elicit({
              message: 'Where to?',
              requestedSchema: {
                type: 'object',
                properties: { place: { type: 'string', enum: ['test', 'live'] } },
                required: ['place'],
              },
            }),
          },
          requestState: STATE,
        });
      const where = responses?.['where'] as Answer | undefined;
      if (where && state === STATE) return text(`deployed to ${String(where.content?.['place'])}`);
      return inputRequired({
        inputRequests: {
          sure: inputRequired.elicit({
            message: 'Are you sure?',
            requestedSchema: { type: 'object', properties: {} },
          }),
        },
      });
    });
    return server;
  }

  const handler = createMcpHandler(build);
  const listener = getRequestListener(async (request) => {
    const { method } = (await request.clone().json()) as { method: string };
    methods.push(method);
    return handler.fetch(request);
  });
  const server = createServer((request, response) => void listener(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    calls,
    methods,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Answer {
  action: string;
  content?: Record<string, unknown>;
}

function text(said: string): CallToolResult {
  return { content: [{ type: 'text', text: said }] };
}
