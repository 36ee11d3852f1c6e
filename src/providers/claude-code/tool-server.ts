import type { PromptMessage, ToolSpec } from '../../events/index.ts';

/** Claude Code puts this before the names of our tools. */
export const TOOL_PREFIX = 'mcp__troupe__';

export type ToolMessage = Extract<PromptMessage, { role: 'tool' }>;

/** The tools of one Claude Code process, which asks for their results while its turn stays open. */
export interface ToolServer {
  /** For the SDK's option `mcpServers`. */
  servers: Record<string, unknown>;
  /** Results by call id. They may arrive before they are asked for: Claude Code makes calls one after another. */
  answer(results: readonly ToolMessage[]): void;
  /** Begins another turn. */
  reset(): void;
}

/** The key under which Claude Code passes the model's call id. */
const CALL_ID = 'claudecode/toolUseId';

/** An MCP server within this process. Passes schemas on unchanged, which the SDK's own helper cannot. */
export async function createToolServer(tools: readonly ToolSpec[]): Promise<ToolServer> {
  const [{ Server }, { CallToolRequestSchema, ListToolsRequestSchema }] = await Promise.all([
    import('@modelcontextprotocol/sdk/server/index.js'),
    import('@modelcontextprotocol/sdk/types.js'),
  ]);
  const results = new Map<string, PromiseWithResolvers<ToolMessage>>();
  const resultOf = (id: string) => {
    const known = results.get(id) ?? Promise.withResolvers<ToolMessage>();
    results.set(id, known);
    return known;
  };
  const server = new Server({ name: 'troupe', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: tools.map(({ name, description, parameters }) => ({
      name,
      description,
      inputSchema: { type: 'object' as const, ...parameters },
      // Otherwise Claude Code may hide tools until the model searches for them.
      _meta: { 'anthropic/alwaysLoad': true },
    })),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    const id = params._meta?.[CALL_ID];
    if (typeof id !== 'string') throw new Error('the call does not say which one it is');
    const { content, failed } = await resultOf(id).promise;
    return { content: content === '' ? [] : [{ type: 'text', text: content }], isError: failed };
  });
  return {
    servers: tools.length > 0 ? { troupe: { type: 'sdk', name: 'troupe', instance: server } } : {},
    answer(messages) {
      for (const message of messages) resultOf(message.call).resolve(message);
    },
    reset: () => results.clear(),
  };
}
