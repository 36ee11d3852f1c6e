import { type CallToolResult, Server, type Tool } from '@modelcontextprotocol/server';

const ANY = { type: 'object' } as const;

/** More tools than fit on one page. */
export const TOOLS: Tool[] = [
  {
    name: 'add',
    description: 'Adds two numbers.',
    inputSchema: {
      type: 'object',
      properties: { a: { type: 'number' }, b: { type: 'number' } },
      required: ['a', 'b'],
    },
    annotations: { idempotentHint: true },
  },
  { name: 'environment', inputSchema: ANY, annotations: { readOnlyHint: true } },
  { name: 'process', inputSchema: ANY },
  { name: 'wait', inputSchema: ANY },
  { name: 'big', inputSchema: ANY },
  { name: 'endless', inputSchema: ANY },
  { name: 'media', inputSchema: ANY },
  { name: 'facts', inputSchema: ANY },
  { name: 'refuse', inputSchema: ANY },
  { name: 'change', inputSchema: ANY },
  { name: 'die', inputSchema: ANY },
  { name: 'steps', inputSchema: ANY },
  { name: 'files.read/all', inputSchema: ANY },
];

const PAGE = 4;

export interface McpToolsOptions {
  /** Receives every call and its cancellation. */
  trace: (line: string) => void;
  tools?: readonly Tool[];
  die?: () => void;
  /** With resources and prompts. */
  hasLibrary?: boolean;
}

/** A server whose tools behave well and badly. */
export function createMcpServer({ trace, tools = TOOLS, die, hasLibrary }: McpToolsOptions): Server {
  const server = new Server(
    { name: 'fake', version: '1' },
    {
      capabilities: {
        tools: { listChanged: true },
        ...(hasLibrary && { resources: {}, prompts: {} }),
      },
    },
  );
  if (hasLibrary) addLibrary(server, trace);
  const withdrawn = new Set<unknown>();
  server.setRequestHandler('tools/list', ({ params }) => {
    const start = Number(params?.cursor ?? 0);
    const end = start + PAGE;
    const page = tools.slice(start, end).filter(({ name }) => !withdrawn.has(name));
    return { tools: page, ...(end < tools.length && { nextCursor: `${end}` }) };
  });
  server.setRequestHandler(
    'tools/call',
    async ({ params }, { mcpReq: { signal, notify } }): Promise<CallToolResult> => {
      const { name, arguments: args = {} } = params;
      trace(`call ${name} ${JSON.stringify(args)}`);
      switch (name) {
        case 'add':
          if (typeof args['a'] !== 'number' || typeof args['b'] !== 'number') {
            return { isError: true, content: [{ type: 'text', text: 'a and b must be numbers' }] };
          }
          return text(`${args['a'] + args['b']}`);
        case 'environment':
          return text(JSON.stringify(process.env));
        case 'process':
          return text(`${process.pid}`);
        case 'wait':
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          trace('cancelled');
          return text('never seen');
        case 'big':
          return text('a line of a long output\n'.repeat(4_000));
        case 'endless':
          return text('x'.repeat(11 * 1024 * 1024));
        case 'media':
          return {
            content: [
              { type: 'text', text: 'two pictures' },
              { type: 'image', mimeType: 'image/png', data: Buffer.alloc(1_000).toString('base64') },
              { type: 'resource_link', uri: 'file:///a.txt', name: 'a', mimeType: 'text/plain', size: 12 },
              { type: 'resource', resource: { uri: 'file:///b.txt', text: 'what b holds' } },
              { type: 'resource', resource: { uri: 'file:///c.bin', blob: 'AAAA' } },
            ],
          };
        case 'facts':
          return { content: [], structuredContent: { warm: true, degrees: 21 } };
        case 'refuse':
          return {
            isError: true,
            content: [{ type: 'text', text: `no, not with ${process.env['SECRET']}` }],
          };
        case 'change':
          withdrawn.clear();
          withdrawn.add(args['withdraw']);
          await server.sendToolListChanged();
          return text('changed');
        case 'steps': {
          const { progressToken = 'none' } = params._meta ?? {};
          const report = { progressToken, progress: 1, total: 3, message: 'first step' };
          await notify({ method: 'notifications/progress', params: report });
          // The client has read the report when it answers.
          await server.ping();
          return text('all steps');
        }
        case 'consent': {
          const form = { message: 'May I?', requestedSchema: { type: 'object' as const, properties: {} } };
          const { action } = await server.elicitInput(form);
          return text(`consent: ${action}`);
        }
        case 'die':
          die?.();
          return new Promise(() => undefined);
        default:
          return text(`${name} answers`);
      }
    },
  );
  return server;
}

function addLibrary(server: Server, trace: (line: string) => void): void {
  server.setRequestHandler('resources/list', ({ params }) =>
    params?.cursor === 'two'
      ? { resources: [{ uri: 'note:b', name: 'b' }] }
      : {
          resources: [
            { uri: 'note:a', name: 'a', mimeType: 'text/plain', size: 6, description: 'First\nnote.' },
          ],
          nextCursor: 'two',
        },
  );
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [{ uriTemplate: 'note:{name}', name: 'notes' }],
  }));
  server.setRequestHandler('resources/read', ({ params: { uri } }) => {
    trace(`read ${uri}`);
    if (uri === 'note:big') return { contents: [{ uri, text: 'a long line\n'.repeat(4_000) }] };
    if (uri !== 'note:a') throw new Error(`no ${uri} here`);
    return {
      contents: [
        { uri, mimeType: 'text/plain', text: 'note a' },
        { uri: 'note:bin', blob: 'AAAA' },
      ],
    };
  });
  server.setRequestHandler('prompts/list', () => ({
    prompts: [{ name: 'greet', description: 'Greets.', arguments: [{ name: 'who', required: true }] }],
  }));
  server.setRequestHandler('prompts/get', ({ params: { name, arguments: args } }) => {
    trace(`prompt ${name} ${JSON.stringify(args)}`);
    return {
      messages: [
        { role: 'user' as const, content: { type: 'text' as const, text: `Greet ${args?.['who']}.` } },
      ],
    };
  });
}

function text(said: string): CallToolResult {
  return { content: [{ type: 'text', text: said }] };
}
