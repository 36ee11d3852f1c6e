import type { Transport } from '@modelcontextprotocol/client';
import { below, pick, type Random } from '../../sim/random.ts';
import { systemClock } from '../../src/base/clock.ts';
import type { ActorAddress } from '../../src/events/index.ts';
import { createConnection } from '../../src/tools/mcp/connection.ts';
import { readAnswers } from '../../src/tools/mcp/http-transport.ts';
import { readTool } from '../../src/tools/mcp/results.ts';
import { createWire, type Wire } from '../../src/tools/mcp/wire.ts';
import { wrapTool } from '../../src/tools/mcp/tools.ts';
import { createToolContext } from '../../packages/testing/src/tool-context.ts';
import { runTool } from '../../src/tools/run-tool.ts';
import { toolSpec } from '../../src/tools/tool.ts';
import { mutate } from '../mutate.ts';
import { nastyText, nastyValue, nested } from '../nasty.ts';
import { Broken, type Target } from '../target.ts';

/**
 * An MCP server that answers with arbitrary texts, as lines or by the body of an HTTP answer, to the real client and our code
 * around it.
 * S1  A listing gives tools that can stand in a prompt, or a readable error; a call gives a result with text. Nothing
 * is thrown.
 * S2  Every offered tool has a name that vendors accept, and can be written as JSON.
 * S3  The good tool of a list is offered, whatever stands beside it.
 * S4  A call whose answer has a result is done, unless the result says that it failed; one whose answer is none ends at once.
 * S5  An answer that names no request is that of the only one that waits, if it is an error. With others beside it nothing
 *     says whose it is, and the call ends by its limit.
 */
export interface McpInput {
  /** What stands in the list of tools beside a good one. */
  tools: unknown[];
  result: unknown;
  /** The answer to a call; null: the result in its envelope. `$id` and `$result` stand for those. */
  answer: string | null;
  http: { type: string; status: number } | null;
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
      const wire = createWire();
      const call: Call = { isAnswered: true };
      const connection = createConnection({
        timeoutMs: TIMEOUT_MS,
        createLink: () =>
          Promise.resolve({
            transport: transportOf(input, wire, call),
            wire,
            isOld: () => false,
            fate: () => null,
            isAnswer: () => false,
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
        const { tools } = await connection.list();
        const read = tools.map(readTool).filter((each) => 'parameters' in each);
        const good = read.find(({ name }) => name === GOOD.name);
        if (!good) throw new Broken('the good tool is not offered');
        const tool = pickLast(read) ?? good;
        const settings = { command: 'x', args: [], env: [], cwd: undefined, timeoutMs: TIMEOUT_MS };
        const wrapped = wrapTool(tool, { server: 's', settings, connection, redact: (text) => text });
        const spec = JSON.stringify(toolSpec(wrapped));
        if (!NAME.test(wrapped.name) || spec.length > 400_000) throw new Broken(`offered as ${wrapped.name}`);
        const made = { id: 'c1', name: wrapped.name, args: '{}' };
        const ran = await runTool(wrapped, made, createToolContext(CONTEXT), { clock: systemClock });
        if (typeof ran.text !== 'string') throw new Broken('a result without a text');
        checkOutcome(input, ran, call);
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

const GOOD = { name: 'good', inputSchema: { type: 'object' } };

function pickLast<T>(list: readonly T[]): T | undefined {
  return list.at(-1);
}

function checkOutcome(
  { result, answer }: McpInput,
  { outcome, text }: { outcome: string; text: string },
  { isAnswered }: Call,
): void {
  if (text.includes('longer than') && isAnswered)
    throw new Broken('a call waited for an answer that had come');
  const { isError, resultType } = Object(result) as Record<string, unknown>;
  if (isError === true || isError === 'true' || resultType === 'input_required' || answer !== null) return;
  if (outcome !== 'done') throw new Broken(`a call that ran is reported as failed: ${text.slice(0, 200)}`);
}

interface Call {
  /** Whether an answer has come that can be told to be that of the call. */
  isAnswered: boolean;
}

/** The server, in this process. Its messages are texts, as on a wire, and each arrives in a turn of the event loop. */
function transportOf(input: McpInput, wire: Wire, call: Call): Transport {
  /** Requests whose answers were not said yet. */
  const open = new Set<number>();
  const { tools, result, notices } = wireOf(input);
  const transport: Transport = {
    start: () => Promise.resolve(),
    close: () => {
      transport.onclose?.();
      return Promise.resolve();
    },
    async send(message) {
      const { id, method } = message as { id?: number; method?: string };
      // A message without a method answers a request that a notice of ours had made.
      if (id === undefined || method === undefined) return;
      open.add(id);
      for (const notice of notices) say(notice);
      const whole = `{"jsonrpc":"2.0","id":${id},"result":${resultOf(method)}}`;
      if (method !== 'tools/call') return say(whole, () => void open.delete(id));
      const text = input.answer?.replaceAll('$id', String(id)).replaceAll('$result', () => result) ?? whole;
      if (input.http) for (const line of await overHttp(text, input.http, message, wire)) hear(line);
      else say(text, () => void (call.isAnswered = namesCall(input) || (isError(input) && open.size === 1)));
    },
  };
  function resultOf(method: string | undefined): string {
    if (method === 'tools/call') return result;
    if (method === 'tools/list') return `{"tools":[${JSON.stringify(GOOD)}${tools}]}`;
    const serverInfo = { name: 'x', version: '1' };
    return JSON.stringify({ protocolVersion: '2025-03-26', capabilities: { tools: {} }, serverInfo });
  }
  function say(text: string, saying: () => void = () => undefined): void {
    setImmediate(() => {
      saying();
      try {
        for (const message of wire.read(text)) transport.onmessage?.(message);
      } catch (error) {
        transport.onerror?.(error as Error);
      }
    });
  }
  /** Texts that `readAnswers` has made. */
  function hear(text: string): void {
    setImmediate(() => transport.onmessage?.(JSON.parse(text) as never));
  }
  return transport;
}

function namesCall({ answer }: McpInput): boolean {
  return answer === null || answer.includes('$id');
}

function isError({ answer }: McpInput): boolean {
  return answer?.includes('"error"') === true;
}

/** The messages that the client would read of an answer. */
async function overHttp(
  text: string,
  { type, status }: NonNullable<McpInput['http']>,
  message: unknown,
  wire: Wire,
): Promise<string[]> {
  const body =
    type === 'text/event-stream' ? `event: message\ndata: ${text.replaceAll('\n', ' ')}\n\n` : text;
  const fetch = readAnswers(
    () => Promise.resolve(new Response(body, { status, headers: { 'content-type': type } })),
    wire,
  );
  const init = { method: 'POST', body: JSON.stringify(message) };
  const response = await fetch('http://127.0.0.1/', init);
  const given = await response.text();
  if (response.headers.get('content-type') === 'application/json')
    return (JSON.parse(given) as unknown[]).map((each) => JSON.stringify(each));
  const events = given.split('\n').filter((line) => line.startsWith('data:'));
  const read = events.map((line) => line.slice(5)).filter((data) => data.startsWith(' {"jsonrpc":"2.0"'));
  const { id } = message as { id: number };
  const failed = wire.fail(id, 'the stream ended during the call');
  return failed ? [...read, JSON.stringify(failed)] : read;
}

interface Texts {
  tools: string;
  result: string;
  notices: string[];
}

const wires = new WeakMap<McpInput, Texts>();

/** Built once for all repetitions of an input, so that the server's own work does not count as time of the client. */
function wireOf(input: McpInput): Texts {
  const known = wires.get(input);
  if (known) return known;
  const text = (value: unknown) => JSON.stringify(value) ?? 'null';
  const wire = {
    tools: input.tools.map((tool) => `,${text(tool)}`).join(''),
    result: text(input.result),
    notices: input.notices.map(text),
  };
  wires.set(input, wire);
  return wire;
}

/** Answers to a call that are none, or that are odd. */
const ANSWERS = [
  '{"jsonrpc":"2.0","id":$id,"result":',
  '{"jsonrpc":"2.0","id":$id,"result":$result,"error":null}',
  '{"jsonrpc":"2.0","id":"$id","result":$result}',
  '[{"jsonrpc":"2.0","id":$id,"result":$result}]',
  '{"id":$id,"result":$result}',
  '{"jsonrpc":"2.0","id":$id}',
  '{"jsonrpc":"2.0","id":$id,"error":$result}',
  '{"jsonrpc":"2.0","id":null,"error":{"data":$result}}',
  '{"jsonrpc":"2.0","id":$id,"error":{"code":$result,"message":$result}}',
  '\uFEFF{"jsonrpc":"2.0","id":$id,"result":$result}',
  'a line of a log{"jsonrpc":"2.0","id":$id,"result":$result}',
] as const;
const TYPES = ['application/json', 'text/event-stream', 'text/plain', 'text/html', ''] as const;

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
  const http = random() < 0.5 ? null : { type: pick(random, TYPES), status: pick(random, [200, 201, 202]) };
  return {
    tools: random() < 0.05 ? [nastyValue(random)] : tools,
    result: random() < 0.1 ? nastyValue(random) : random() < 0.35 ? mutate(random, result) : result,
    answer: random() < 0.75 ? null : pick(random, ANSWERS),
    http,
    notices: Array.from({ length: below(random, 3) }, () =>
      random() < 0.4 ? mutate(random, notice) : notice,
    ),
  };
}
