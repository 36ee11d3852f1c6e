import {
  createMcpHandler,
  McpServer,
  PROTOCOL_VERSION_META_KEY,
  type ServerContext,
  ProtocolError,
  ProtocolErrorCode,
  ResourceTemplate,
} from '@modelcontextprotocol/server';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';
import {
  CAPABILITIES,
  type McpHost,
  parseExchangeId,
  Outcome,
  type Call,
  callAndWait,
  callForText,
  canAsk,
  describeError,
} from './call-tool.ts';
import { type Event, messageText, type AgentInfo } from '../troupe.ts';

const REJECTED = 'Rejected inbound request';

/** An MCP server for one caller: agents are tools, conversations are resources. */
export function createServer(host: McpHost): McpServer {
  const { tools, resources } = CAPABILITIES;
  const server = new McpServer(
    { name: 'troupe', title: 'Troupe', version: host.version },
    {
      instructions: instructionsFor(host.troupe.agents),
      capabilities: { tools, ...(host.scopes.includes('read') && { resources }) },
    },
  );
  addTools(server, host);
  addResources(server, host);
  return server;
}

/** Answers one request of the streamable HTTP transport, without sessions. `body`: its parsed JSON. */
export async function answerMcp(host: McpHost, request: Request, body: unknown): Promise<Response> {
  const pong = pongTo(body);
  if (pong) return Response.json(pong);
  const { fetch } = createMcpHandler(() => createServer(host), {
    // These errors are the client's fault, and the client gets them as its answer.
    onerror: (error) => void (error.message.startsWith(REJECTED) || host.onError(error)),
  });
  return fetch(request, { parsedBody: body });
}

interface Pong {
  jsonrpc: '2.0';
  id: string | number;
  result: { resultType?: 'complete' };
}

/**
 * Answers a ping, which revision 2026-07-28 does not have. Its clients send pings anyway, some without the fields that the
 * revision requires of each request. Null if the body is another request.
 */
function pongTo(body: unknown): Pong | null {
  const { method, id, params } = Object(body) as Record<string, unknown>;
  if (method !== 'ping' || (typeof id !== 'string' && typeof id !== 'number')) return null;
  const meta = Object(Object(params)['_meta']) as Record<string, unknown>;
  const isNew = meta[PROTOCOL_VERSION_META_KEY] !== undefined;
  return { jsonrpc: '2.0', id, result: isNew ? { resultType: 'complete' } : {} };
}

/** Serves the client at the other end of stdin and stdout. */
export function serveClient(
  create: () => McpServer,
  onError: (error: unknown) => void,
): { close(): Promise<void> } {
  const transport = new StdioServerTransport();
  const server = serveStdio(create, { transport, onerror: onError });
  const { onmessage } = transport;
  // The package infers the revision of the whole connection from the first requests, and a ping names none.
  transport.onmessage = (message) => {
    const pong = pongTo(message);
    if (pong) transport.send(pong).catch(onError);
    else onmessage?.(message);
  };
  return server;
}

const OWN = ['ask', 'status', 'answer', 'decide', 'cancel'];
const WAITS =
  'Waits for the answer; with the status "working" call "status" for the rest. To add something while they work, ask again in the same conversation.';
const ACTS = { readOnlyHint: false, destructiveHint: false, openWorldHint: true } as const;

/** Adds the tools that the caller may use. Tools that return agents' answers need `read`, like any reading. */
function addTools(server: McpServer, host: McpHost): void {
  const call = (context: ServerContext): Call => ({ host, context, canAsk: canAsk(server, context) });
  const canWrite = host.scopes.includes('write');
  if (host.scopes.includes('read')) {
    if (canWrite) {
      addAsking(server, host, call);
      addDeciding(server, host, call);
    }
    if (canWrite && host.scopes.includes('operate')) addWorkflows(server, host, call);
    addStatus(server, call);
  }
  if (canWrite) addCancel(server, host);
}

type CallOf = (context: ServerContext) => Call;

function addAsking(server: McpServer, host: McpHost, call: CallOf): void {
  const { agents } = host.troupe;
  const ask = (context: ServerContext, { message, agent, conversation, wait }: AskInput) =>
    callAndWait(
      call(context),
      (key) =>
        host.send({
          conversation: conversation ?? host.newConversation(key),
          content: message,
          agent,
          ...(key !== null && { id: `mcp-${key}`.slice(0, 256) }),
        }),
      wait,
    );
  server.registerTool(
    'ask',
    {
      title: 'Ask the company',
      description: `Asks agents of this company to answer or do something. ${WAITS} Agents: ${agentLines(agents)}`,
      inputSchema: AskInput,
      outputSchema: Outcome,
      annotations: ACTS,
    },
    (input, context) => ask(context, input),
  );
  const byId = new Map(agents.map((agent) => [String(agent.id), agent]));
  for (const { name, id } of toolNames('ask', [...byId.keys()], OWN)) {
    const agent = byId.get(id);
    if (!agent) continue;
    server.registerTool(
      name,
      {
        title: `Ask ${agent.name}`,
        description: `Asks the agent ${agentLine(agent)} to answer or do something. ${WAITS}`,
        inputSchema: AskAgentInput,
        outputSchema: Outcome,
        annotations: ACTS,
      },
      (input, context) => ask(context, { ...input, agent: id }),
    );
  }
}

function addDeciding(server: McpServer, host: McpHost, call: CallOf): void {
  server.registerTool(
    'answer',
    {
      title: 'Answer a question of an agent',
      description: `Answers the question that an agent waits for. ${WAITS}`,
      inputSchema: AnswerInput,
      outputSchema: Outcome,
      annotations: ACTS,
    },
    ({ conversation, question, text, wait }, context) =>
      callAndWait(
        call(context),
        () => host.command({ command: 'answer', conversation, question, content: text }),
        wait,
      ),
  );
  server.registerTool(
    'decide',
    {
      title: 'Approve or refuse a call',
      description: `Approves or refuses the tool call that an agent waits for. This is for people to decide: ask your user first. ${WAITS}`,
      inputSchema: DecideInput,
      outputSchema: Outcome,
      annotations: { ...ACTS, destructiveHint: true },
    },
    ({ conversation, request, approved, note, wait }, context) =>
      callAndWait(
        call(context),
        () => host.command({ command: 'decide', conversation, request, approved, note }),
        wait,
      ),
  );
}

function addWorkflows(server: McpServer, host: McpHost, call: CallOf): void {
  const byId = new Map(host.troupe.workflows.map((workflow) => [workflow.id, workflow]));
  for (const { name, id: workflow } of toolNames('run', [...byId.keys()])) {
    const { directive = null, steps = [] } = byId.get(workflow) ?? {};
    const purpose = directive === null ? '' : `: ${directive}`;
    server.registerTool(
      name,
      {
        title: `Run ${workflow}`,
        description: `Runs the workflow ${workflow}${purpose}. Steps: ${steps.map(({ id, agent }) => `${id} (${agent})`).join(', ')}. ${WAITS}`,
        inputSchema: RunInput,
        outputSchema: Outcome,
        annotations: ACTS,
      },
      (input, context) =>
        callAndWait(
          call(context),
          (key) => {
            const conversation = input.conversation ?? host.newConversation(key);
            // The same key gives the same run.
            const run = key === null ? undefined : `mcp-${key}`.replaceAll('.', '-').slice(0, 128);
            return host.command({ command: 'run', conversation, workflow, run, directive: input.directive });
          },
          input.wait,
        ),
    );
  }
}

function addStatus(server: McpServer, call: CallOf): void {
  server.registerTool(
    'status',
    {
      title: 'How far an answer is',
      description:
        'The answer of an earlier call whose status was "working" or "waiting": its words so far, what it waits for, or the whole answer. "wait" waits for it.',
      inputSchema: StatusInput,
      outputSchema: Outcome,
      annotations: { readOnlyHint: true, openWorldHint: true },
    },
    ({ id, wait }, context) => callAndWait(call(context), async () => parseExchangeId(id), wait),
  );
}

function addCancel(server: McpServer, host: McpHost): void {
  server.registerTool(
    'cancel',
    {
      title: 'Cancel what was started',
      description: 'Cancels a question, a request or a task, or all that was started in a conversation.',
      inputSchema: CancelInput,
      annotations: { ...ACTS, idempotentHint: true },
    },
    ({ conversation, task, reason }) =>
      callForText({ host }, async () => {
        await host.command({ command: 'cancelTask', conversation, task, reason });
        return `Cancelled in ${conversation}: ${task}`;
      }),
  );
}

/** A tool for one agent or one workflow. */
interface NamedTool {
  name: string;
  /** Id of the agent or the workflow. */
  id: string;
}

/** Most characters: clients put the server's name before it, and vendors allow 64 characters. */
const MOST_NAME_CHARS = 48;

/** One tool for each id: `PREFIX_ID`. Ids whose tool names would be equal or too long get none. */
function toolNames(prefix: string, ids: readonly string[], taken: readonly string[] = []): NamedTool[] {
  const seen = new Set(taken);
  return ids.flatMap((id) => {
    const name = `${prefix}_${id.replaceAll(/[^A-Za-z0-9_-]/g, '_')}`;
    if (name.length > MOST_NAME_CHARS || seen.has(name)) return [];
    seen.add(name);
    return [{ name, id }];
  });
}

/** Default wait, s: clients commonly give up a request after 60 s. */
const WAIT_S = 45;
const MOST_WAIT_S = 600;
const MOST_CHARS = 500_000;

const waitOf = (seconds: number) =>
  z
    .number()
    .min(0)
    .max(MOST_WAIT_S)
    .default(seconds)
    .describe(`Longest wait for the answer, in seconds. Default ${seconds}. The work goes on after it`);
const Conversation = z.string().min(1).max(128).describe('Id of the conversation');

/** Input of a tool that is named after an agent. */
const AskAgentInput = z.object({
  message: z
    .string()
    .min(1)
    .max(MOST_CHARS)
    .describe('What the agent is to answer or do, with all it needs to know'),
  conversation: Conversation.optional().describe(
    'Id of the conversation to go on with, as an earlier answer gave it. Default: a new one, which knows nothing of earlier ones',
  ),
  wait: waitOf(WAIT_S),
});
type AskAgentInput = z.infer<typeof AskAgentInput>;

/** Input of the tool that asks the company. */
const AskInput = AskAgentInput.extend({
  agent: z.string().min(1).max(128).optional().describe('Id of the agent. Default: whoever is responsible'),
});
type AskInput = z.infer<typeof AskInput>;

/** Input of a tool that is named after a workflow. */
const RunInput = z.object({
  directive: z.string().min(1).max(MOST_CHARS).optional().describe('Purpose of this run'),
  conversation: AskAgentInput.shape.conversation,
  wait: waitOf(WAIT_S),
});
type RunInput = z.infer<typeof RunInput>;

const StatusInput = z.object({
  id: z.string().min(1).max(200).describe('Id of the answer, as "ask" gave it'),
  wait: waitOf(0),
});
type StatusInput = z.infer<typeof StatusInput>;

const AnswerInput = z.object({
  conversation: Conversation,
  question: z.string().min(1).max(256).describe('Id of the question'),
  text: z.string().min(1).max(MOST_CHARS).describe('The answer'),
  wait: waitOf(WAIT_S),
});
type AnswerInput = z.infer<typeof AnswerInput>;

const DecideInput = z.object({
  conversation: Conversation,
  request: z.string().min(1).max(256).describe('Id of the request for approval'),
  approved: z
    .boolean()
    .describe('Whether the call may run. Decide only as the person you act for has told you'),
  note: z.string().max(10_000).optional().describe('A note for the agent'),
  wait: waitOf(WAIT_S),
});
type DecideInput = z.infer<typeof DecideInput>;

const CancelInput = z.object({
  conversation: Conversation,
  task: z
    .string()
    .min(1)
    .max(256)
    .default('all')
    .describe(
      'Id of a question, a request or a task. Default: everything that was started in the conversation',
    ),
  reason: z.string().max(1_000).optional().describe('Shown to the agents'),
});
type CancelInput = z.infer<typeof CancelInput>;

/** Most conversations that are listed, the newest ones. */
const LISTED = 50;
/** Most events of a conversation that are shown, the newest ones, and most characters of a resource. */
const MOST_EVENTS = 500;
const MOST_RESOURCE_CHARS = 100_000;
const MARKDOWN = 'text/markdown';

/** Adds conversations, and the prompts that models were sent, as resources. */
function addResources(server: McpServer, host: McpHost): void {
  if (!host.scopes.includes('read')) return;
  const { troupe } = host;
  const reading = <T>(work: () => Promise<T>) => orProblem(host, () => host.read(work));
  server.registerResource(
    'conversation',
    new ResourceTemplate('troupe://conversations/{conversation}', {
      list: () =>
        reading(async () => {
          const { conversations } = await troupe.listConversations({ limit: LISTED });
          return {
            resources: conversations.map(({ id, at }) => ({
              uri: `troupe://conversations/${encodeURIComponent(id)}`,
              name: id,
              mimeType: MARKDOWN,
              annotations: { lastModified: new Date(at).toISOString() },
            })),
          };
        }),
    }),
    {
      title: 'A conversation',
      description: `What people and agents have said, the newest ${MOST_EVENTS} events at most`,
      mimeType: MARKDOWN,
    },
    (uri, { conversation }) =>
      reading(async () => {
        const name = decoded(conversation);
        const { head } = await troupe.events(name, { limit: 1 });
        const { events } = await troupe.events(name, {
          after: Math.max(0, head - MOST_EVENTS),
          limit: MOST_EVENTS,
        });
        return textOf(uri, MARKDOWN, transcriptOf(name, events, MOST_RESOURCE_CHARS));
      }),
  );
  server.registerResource(
    'prompt',
    new ResourceTemplate('troupe://prompts/{turn}', { list: undefined }),
    {
      title: 'The prompt of a turn',
      description: 'What the model was sent in a turn of an agent, such as hello:coder:1',
      mimeType: 'application/json',
    },
    (uri, { turn }) =>
      reading(async () => {
        const { tools, messages } = await troupe.promptOf(decoded(turn));
        const text = JSON.stringify({ tools, messages }, null, 1);
        return textOf(uri, 'application/json', text.slice(0, MOST_RESOURCE_CHARS).toWellFormed());
      }),
  );
}

function decoded(name: unknown): string {
  try {
    return decodeURIComponent(String(name));
  } catch {
    const message =
      'the address of the resource is not valid: each % is followed by the two digits of a byte of UTF-8';
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, message);
  }
}

function textOf({ href }: URL, mimeType: string, text: string) {
  return { contents: [{ uri: href, mimeType, text }] };
}

async function orProblem<T>(host: McpHost, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, describeError(error, host));
  }
}

/** Texts of events, one paragraph each, with authors and seqs: the newest that fit into `mostChars`. */
function transcriptOf(conversation: string, events: readonly Event[], mostChars: number): string {
  const kept: string[] = [];
  let left = mostChars;
  let dropped = 0;
  for (const event of events.toReversed()) {
    const text = wordsOf(event);
    if (text === null) continue;
    const { kind, name } = event.author;
    const paragraph = `**${kind === 'agent' ? '@' : ''}${oneLine(name)}** (${event.seq}): ${text}`;
    if (paragraph.length > left) {
      dropped = event.seq;
      break;
    }
    left -= paragraph.length;
    kept.unshift(paragraph);
  }
  const more = dropped > 0 ? [`(Up to event ${dropped} it is not shown.)`] : [];
  return [`# ${conversation}`, ...more, ...kept].join('\n\n');
}

/** Null if there is nothing for people to read. */
function wordsOf(event: Event): string | null {
  if (event.kind === 'message' || event.kind === 'notice') return messageText(event.body);
  if (event.kind === 'step') return event.body.content || null;
  if (event.kind === 'question') return `asks: ${event.body.text}`;
  if (event.kind !== 'approval.requested') return null;
  return `waits for approval to call ${event.body.tool} ${event.body.args}`;
}

function oneLine(name: string): string {
  return name.replace(/[\p{Cc}\p{Zl}\p{Zp}*]+/gu, ' ');
}

type Described = Pick<AgentInfo, 'id' | 'name' | 'description' | 'capabilities'>;

/** Most characters of an agent's line, and of a list: clients put both into their prompts. */
const LINE_CHARS = 1_000;
const LIST_CHARS = 8_000;

/** A description of an agent that helps others to choose. */
function agentLine({ id, name, description, capabilities }: Described): string {
  const skills = capabilities.length > 0 ? ` (${capabilities.join(', ')})` : '';
  const line = `${id}${name === id ? '' : `, ${name}`}${description === '' ? '' : `: ${description}`}${skills}`;
  return line.length <= LINE_CHARS ? line : `${line.slice(0, LINE_CHARS - 1).toWellFormed()}…`;
}

function agentLines(agents: readonly Described[]): string {
  const lines: string[] = [];
  let left = LIST_CHARS;
  for (const agent of agents) {
    const line = `\n- ${agentLine(agent)}`;
    left -= line.length;
    if (left < 0) return `${lines.join('')}\n- and ${agents.length - lines.length} more`;
    lines.push(line);
  }
  return lines.join('');
}

/** On one line, agents first: some clients show a model only the first line until it looks for tools. */
function instructionsFor(agents: readonly Described[]): string {
  const list = agentLines(agents).replaceAll('\n- ', ' · ').replaceAll(/\s+/g, ' ');
  return `Agents of a company that answer and work:${list}. "ask" asks whoever is responsible, "ask_AGENT" one agent. An answer names its conversation: name it again to go on there.`;
}
