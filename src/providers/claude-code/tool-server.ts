import type { PromptMessage, ToolSpec } from '../../events/index.ts';

/** Before the names of our tools, as Claude Code shows them to the model. */
export const TOOL_PREFIX = 'mcp__troupe__';

export type ToolMessage = Extract<PromptMessage, { role: 'tool' }>;

/** The tools of one process of Claude Code, which asks for their results while its turn stays open. */
export interface ToolServer {
  /** For the SDK's option `mcpServers`. */
  servers: Record<string, unknown>;
  /** Results of calls, by their ids, whether they were asked for yet or not: calls are made one after another. */
  answer(results: readonly ToolMessage[]): void;
  /** Another turn begins. */
  reset(): void;
}

/** The key under which Claude Code tells whose call it is: the id that the model gave. */
const CALL_ID = 'claudecode/toolUseId';

/** An MCP server within this process. Schemas are passed on as they are, which the SDK's own helper cannot. */
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
      // Otherwise it may keep tools back until the model has searched for them.
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
