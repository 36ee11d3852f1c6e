import type { PromptMessage, ToolSpec } from '../troupe.ts';

/** Prefix that Claude Code puts before the names of our tools. */
export const TOOL_PREFIX = 'mcp__troupe__';

export type ToolMessage = Extract<PromptMessage, { role: 'tool' }>;

/** The tools of one Claude Code process, which asks for their results while its turn stays open. */
export interface ToolServer {
  /** For the SDK's option `mcpServers`. */
  servers: Record<string, unknown>;
  /** Passes results by call id. They may arrive before they are requested, because Claude Code makes calls one after another. */
  answer(results: readonly ToolMessage[]): void;
  /** Begins another turn. */
  reset(): void;
}

/** The key under which Claude Code passes the model's call id. */
const CALL_ID = 'claudecode/toolUseId';

/** The connection that Claude Code's SDK gives to a server within this process. */
interface Wire {
  onmessage?: (message: Received) => void;
  start(): Promise<void>;
  send(message: object): Promise<void>;
}

/** A request, or a notification if it has no id. */
interface Received {
  id?: string | number;
  method?: string;
  params?: { protocolVersion?: string; _meta?: Record<string, unknown> };
}

/** Codes of JSON-RPC. */
const METHOD_NOT_FOUND = -32_601;
const INTERNAL_ERROR = -32_603;

/**
 * An MCP server within this process, with the methods that Claude Code calls. Passes schemas on unchanged, which the SDK's own
 * helper cannot.
 */
export function createToolServer(tools: readonly ToolSpec[]): ToolServer {
  const results = new Map<string, PromiseWithResolvers<ToolMessage>>();
  const resultOf = (id: string) => {
    const known = results.get(id) ?? Promise.withResolvers<ToolMessage>();
    results.set(id, known);
    return known;
  };
  const methods: Record<string, (params: Received['params']) => object | Promise<object>> = {
    initialize: (params) => ({
      protocolVersion: params?.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: 'troupe', version: '1' },
    }),
    ping: () => ({}),
    'tools/list': () => ({ tools: tools.map(listedTool) }),
    async 'tools/call'(params) {
      const id = params?._meta?.[CALL_ID];
      if (typeof id !== 'string') throw new Error('the call does not say which one it is');
      const { content, failed } = await resultOf(id).promise;
      return { content: content === '' ? [] : [{ type: 'text', text: content }], isError: failed };
    },
  };

  async function respond({ id, method = '', params }: Received): Promise<object> {
    const run = Object.hasOwn(methods, method) ? methods[method] : undefined;
    if (!run) return failure(id, METHOD_NOT_FOUND, `there is no method ${method}`);
    try {
      return { jsonrpc: '2.0', id, result: await run(params) };
    } catch (error) {
      return failure(id, INTERNAL_ERROR, (error as Error).message);
    }
  }

  function connect(wire: Wire): Promise<void> {
    wire.onmessage = (message) => {
      if (message.id === undefined || message.method === undefined) return;
      // A closed connection takes no answer, and nobody waits for one.
      respond(message)
        .then((answer) => wire.send(answer))
        .catch(() => undefined);
    };
    return wire.start();
  }

  return {
    servers: tools.length > 0 ? { troupe: { type: 'sdk', name: 'troupe', instance: { connect } } } : {},
    answer(messages) {
      for (const message of messages) resultOf(message.call).resolve(message);
    },
    reset: () => results.clear(),
  };
}

function listedTool({ name, description, parameters }: ToolSpec): object {
  return {
    name,
    description,
    inputSchema: { type: 'object', ...parameters },
    // Without this, Claude Code may hide tools until the model searches for them.
    _meta: { 'anthropic/alwaysLoad': true },
  };
}

function failure(id: Received['id'], code: number, message: string): object {
  return { jsonrpc: '2.0', id, error: { code, message } };
}
