import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import { below, pick, type Random } from '../../sim/random.ts';
import { systemClock } from '../../src/clock.ts';
import type { ActorAddress } from '../../src/events/index.ts';
import { createConnection } from '../../src/tools/mcp/connection.ts';
import { toolProblem } from '../../src/tools/mcp/tool-problem.ts';
import { wrapTool } from '../../src/tools/mcp/wrap-tool.ts';
import { createToolContext } from '../../src/testing/tool-context.ts';
import { runTool } from '../../src/tools/run-tool.ts';
import { toolSpec } from '../../src/tools/tool.ts';
import { mutate } from '../mutate.ts';
import { nastyText, nastyValue, nested } from '../nasty.ts';
import { Broken, type Target } from '../target.ts';

/**
 * An MCP server that answers with arbitrary data, to the real client and our code around it.
 * S1  A listing gives tools that can stand in a prompt, or a readable error; a call gives a result with text. Nothing
 * is thrown.
 * S2  Every offered tool has a name that vendors accept, and can be written as JSON.
 */
export interface McpInput {
  tools: unknown;
  result: unknown;
  /** Unsolicited messages before each answer. */
  notices: unknown[];
}

const CONTEXT = {
  address: { tenant: 't', conversation: 'c', agent: 'ana' } as unknown as ActorAddress,
  effect: 'c:ana:1/1/0',
  signal: new AbortController().signal,
  artifacts: { read: () => Promise.resolve(null) },
  progress: () => undefined,
};
const TIMEOUT_MS = 2_000;
const NAME = /^[A-Za-z0-9_-]{1,64}$/;

export function hostileMcpTarget(): Target<McpInput> {
  return {
    name: 'hostile-mcp',
    keepKeys: true,
    make: makeInput,
    async run(input) {
      const connection = createConnection({
        timeoutMs: TIMEOUT_MS,
        createLink: () =>
          Promise.resolve({
            transport: transportOf(input),
            negotiates: false,
            breaksSilently: false,
            isForgotten: () => false,
            refusal: () => null,
            explain: (error) => String(error).slice(0, 300),
            hint: () => '',
            end: () => Promise.resolve(),
          }),
        redact: (text) => text,
        onToolsChanged: () => undefined,
        onLost: () => undefined,
        clock: systemClock,
      });
      try {
        const listed = await connection.list();
        const [tool] = listed.filter((each) => toolProblem(each) === null);
        if (!tool) return 'no tool that can be offered';
        const settings = { command: 'x', args: [], env: [], cwd: undefined, timeoutMs: TIMEOUT_MS };
        const wrapped = wrapTool(tool, { server: 's', settings, connection, redact: (text) => text });
        const spec = JSON.stringify(toolSpec(wrapped));
        if (!NAME.test(wrapped.name) || spec.length > 400_000) throw new Broken(`offered as ${wrapped.name}`);
        const call = { id: 'c1', name: wrapped.name, args: '{}' };
        const ran = await runTool(wrapped, call, createToolContext(CONTEXT), { clock: systemClock });
        if (typeof ran.text !== 'string') throw new Broken('a result without a text');
        return ran.outcome === 'done' ? 'accepted' : 'failed';
      } catch (thrown) {
        if (thrown instanceof Broken || !(thrown instanceof Error)) throw thrown;
        if (thrown.message === '' || thrown instanceof RangeError) throw thrown;
        return 'no list';
      } finally {
        await connection.close();
      }
    },
  };
}

/** The server, in this process. Its messages go through JSON, as they would over a wire. */
function transportOf(input: McpInput): Transport {
  const { tools, result, notices } = wireOf(input);
  const transport: Transport = {
    start: () => Promise.resolve(),
    close: () => {
      transport.onclose?.();
      return Promise.resolve();
    },
    send(message) {
      const { id, method } = message as { id?: number; method?: string };
      // A message without a method answers a request that a notice of ours had made.
      if (id === undefined || method === undefined) return Promise.resolve();
      for (const notice of notices) say(notice);
      say(`{"jsonrpc":"2.0","id":${id},"result":${resultOf(method)}}`);
      return Promise.resolve();
    },
  };
  function resultOf(method: string | undefined): string {
    if (method === 'tools/call') return result;
    if (method === 'tools/list') return `{"tools":${tools}}`;
    const serverInfo = { name: 'x', version: '1' };
    return JSON.stringify({ protocolVersion: '2025-03-26', capabilities: { tools: {} }, serverInfo });
  }
  /** Each message arrives in a separate turn of the event loop, as from a wire. */
  function say(text: string): void {
    setImmediate(() => transport.onmessage?.(JSON.parse(text) as JSONRPCMessage));
  }
  return transport;
}

interface Wire {
  tools: string;
  result: string;
  notices: string[];
}

const wires = new WeakMap<McpInput, Wire>();

/** Built once for all repetitions of an input, so that the server's own work does not count as time of the client. */
function wireOf(input: McpInput): Wire {
  const known = wires.get(input);
  if (known) return known;
  const text = (value: unknown) => JSON.stringify(value) ?? 'null';
  const wire = {
    tools: text(input.tools),
    result: text(asObject(input.result)),
    notices: input.notices.map(text),
  };
  wires.set(input, wire);
  return wire;
}

/** Anything but an object is no answer; the client would only wait for one. */
function asObject(value: unknown): object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : { content: value };
}

function makeInput(random: Random): McpInput {
  const tool = {
    name: random() < 0.8 ? 'add' : nastyText(random),
    description: random() < 0.8 ? 'Adds.' : nastyText(random),
    inputSchema: {
      type: 'object',
      properties: { a: random() < 0.8 ? { type: 'number' } : nested(random, pick(random, [3, 70, 2_000])) },
    },
    annotations: { idempotentHint: random() < 0.5 },
  };
  const tools = Array.from({ length: 1 + below(random, 3) }, () =>
    random() < 0.2 ? mutate(random, tool) : tool,
  );
  const part = pick(random, [
    { type: 'text', text: 'three' },
    { type: 'image', mimeType: 'image/png', data: 'AAAA' },
    { type: 'resource', resource: { uri: 'file:///x', text: 'x' } },
    { type: 'resource_link', uri: 'file:///x', name: 'x', size: 4 },
  ]);
  const result = { content: [part, { type: 'text', text: nastyText(random) }], isError: random() < 0.1 };
  const notice = {
    jsonrpc: '2.0',
    method: pick(random, [
      'notifications/message',
      'notifications/progress',
      'notifications/tools/list_changed',
    ]),
    params: random() < 0.7 ? {} : nastyValue(random),
  };
  return {
    tools: random() < 0.05 ? nastyValue(random) : tools,
    result: random() < 0.35 ? mutate(random, result) : result,
    notices: Array.from({ length: below(random, 3) }, () =>
      random() < 0.4 ? mutate(random, notice) : notice,
    ),
  };
}
