import type { McpServer, ServerContext } from '@modelcontextprotocol/server';
import { agentLine, agentLines } from './agent-lines.ts';
import { parseExchangeId } from './exchange-id.ts';
import {
  AnswerInput,
  AskAgentInput,
  AskInput,
  CancelInput,
  DecideInput,
  RunInput,
  StatusInput,
} from './inputs.ts';
import { Outcome } from './outcome.ts';
import { type Call, callAndWait, callForText } from './call-tool.ts';
import { canAsk } from './ask-people.ts';
import type { McpHost } from './host.ts';

const OWN = ['ask', 'status', 'answer', 'decide', 'cancel'];
const WAITS =
  'Waits for the answer; with the status "working" call "status" for the rest. To add something while they work, ask again in the same conversation.';
const ACTS = { readOnlyHint: false, destructiveHint: false, openWorldHint: true } as const;

/** The tools that the caller may use. Who hears what agents answer needs `read`, as for any reading. */
export function addTools(server: McpServer, host: McpHost): void {
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
            // The same id again is the same run.
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
export interface NamedTool {
  /** Name of the tool. */
  name: string;
  /** Id of the agent or the workflow. */
  id: string;
}

/** Clients put the name of the server before it, and vendors allow 64 characters. */
const MOST_CHARS = 48;

/** One tool for each id: `PREFIX_ID`. Ids whose names would be the same or too long have none. */
export function toolNames(
  prefix: string,
  ids: readonly string[],
  taken: readonly string[] = [],
): NamedTool[] {
  const seen = new Set(taken);
  return ids.flatMap((id) => {
    const name = `${prefix}_${id.replaceAll(/[^A-Za-z0-9_-]/g, '_')}`;
    if (name.length > MOST_CHARS || seen.has(name)) return [];
    seen.add(name);
    return [{ name, id }];
  });
}
