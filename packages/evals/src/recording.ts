import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import {
  TroupeError,
  type AgentInput,
  type TroupeInput,
  templateOf,
  type ToolSpec,
  EXTRA_TOOLS,
  grantProblems,
  isExtra,
  replaceGrants,
  toolName,
  type McpTool,
  defineTool,
} from './troupe.ts';
import type { ConversationRun } from './conversation-run.ts';

const ToolCall = z.strictObject({
  id: z.string().min(1).max(256),
  name: z.string().min(1).max(256),
  /** JSON, as the model wrote it. */
  args: z.string(),
});

const RecordedTool = z.object({
  name: z.string(),
  description: z.string(),
  parameters: z.record(z.string(), z.unknown()),
});

/** A model's answer in one call. */
const RecordedAnswer = z.strictObject({
  /** Id of the turn. */
  turn: z.string(),
  /** Number of the model call within its turn, from 1. */
  step: z.int().positive(),
  /** Its text. */
  content: z.string(),
  /** Its calls, with the arguments as the model wrote them. */
  calls: z.array(ToolCall).optional(),
  /** Why there is no answer. */
  failed: z.string().optional(),
});
export type RecordedAnswer = z.infer<typeof RecordedAnswer>;

/** A call of a tool of the company, with what it returned. */
const RecordedCall = z.strictObject({
  /** Id of the turn. */
  turn: z.string(),
  /** Name of the tool. */
  tool: z.string(),
  /** Arguments as the tool got them. */
  args: z.record(z.string(), z.unknown()),
  /** Whether it worked. */
  outcome: z.enum(['done', 'failed']),
  /** The result that the model was shown. */
  result: z.string(),
});
export type RecordedCall = z.infer<typeof RecordedCall>;

/** A conversation in a form that a test can play again: `troupe eval record` writes it. */
export const Recording = z.strictObject({
  /** Version of this format. */
  version: z.literal(1),
  /** Id of the conversation, from which the ids of turns and tasks follow. */
  conversation: z.string(),
  /** Start of the clock, ms since the epoch, if something depended on the time of day. Default: the same as in every test. */
  startsAt: z.number().optional(),
  /** For each agent, hashes of what it was told about itself and its tools when this was recorded. */
  agents: z.record(
    z.string(),
    z.strictObject({
      /** Hash of its instructions, role and approvals; several if they changed in between. */
      instructions: z.array(z.string()),
      /** Hash of its tools: names, descriptions and schemas. */
      tools: z.array(z.string()),
    }),
  ),
  /** Answers of models. */
  answers: z.array(RecordedAnswer),
  /** Calls of tools. */
  calls: z.array(RecordedCall),
  /** Tools of an imported conversation that the company lacks: the name, and the ids of the agents that called it. */
  standIns: z.record(z.string(), z.array(z.string())),
  /** What the company's MCP servers offered, by server name. No server is started. */
  servers: z
    .record(
      z.string(),
      z.strictObject({
        /** Its tools, as models were offered them. `grant`: the grant without the server's name. */
        tools: z.array(RecordedTool.extend({ grant: z.string() })),
        /** Whether these are all of the tools that the server offered. */
        isWhole: z.boolean(),
      }),
    )
    .default({}),
  /** Texts that people attached, by name. */
  files: z.record(z.string(), z.string()),
});
export type Recording = z.infer<typeof Recording>;

/** Reads a recording. Throws `config_invalid`. */
export function readRecording(file: string | URL): Recording {
  const path = typeof file === 'string' ? file : fileURLToPath(file);
  try {
    return Recording.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (cause) {
    const reason = cause instanceof z.ZodError ? z.prettifyError(cause) : String(cause);
    throw new TroupeError('config_invalid', `${path} is no recording: ${reason}`, { file: path }, { cause });
  }
}

/** The same text for equal arguments, in whatever order their fields are. */
export function comparable(value: unknown): string {
  try {
    return JSON.stringify(value, (_, part: unknown) => (isRecord(part) ? sorted(part) : part)) ?? 'null';
  } catch {
    // The value is nested too deeply.
    return '';
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function sorted(record: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

const NOT_RECORDED = 'not in the recording:';

/** The text that replaces the answer of a model or tool that was not recorded. */
export function refusal(what: string): string {
  return `${NOT_RECORDED} ${what}`;
}

/** The first thing that a run needed but that was not recorded. Null if there is none. */
export function refusalIn({ events }: ConversationRun): string | null {
  for (const { kind, body } of events) {
    const text = kind === 'turn.failed' ? body.message : kind === 'tool.result' ? body.content : '';
    const at = text.indexOf(NOT_RECORDED);
    if (at >= 0) return text.slice(at);
  }
  return null;
}

/** The first agent that is told something else than when the recording was made. Null if there is none. */
export function changeIn({ events }: ConversationRun, { agents }: Recording): string | null {
  for (const { kind, author, context, turn } of events) {
    const recorded = agents[author.id];
    if (kind !== 'turn.started' || !recorded || !context) continue;
    const { persona = '', tools = '' } = context;
    const since = `have changed since the recording (${turn}); if that was meant, record it again`;
    if (!recorded.instructions.includes(persona)) return `the instructions of @${author.id} ${since}`;
    if (!recorded.tools.includes(tools)) return `the tools of @${author.id} ${since}`;
  }
  return null;
}

/** For each agent, hashes of what it was told about itself and its tools. */
export function agentsOf({ events }: ConversationRun): Recording['agents'] {
  const agents: Recording['agents'] = {};
  for (const { kind, author, context } of events) {
    if (kind !== 'turn.started') continue;
    const known = (agents[author.id] ??= { instructions: [], tools: [] });
    const { persona = '', tools = '' } = context ?? {};
    if (!known.instructions.includes(persona)) known.instructions.push(persona);
    if (!known.tools.includes(tools)) known.tools.push(tools);
  }
  return agents;
}

/** What MCP servers offered, by server name. */
type RecordedServers = Record<
  string,
  {
    /** Tools, as models were offered them. `grant`: the grant without the server's name. */
    tools: (ToolSpec & { grant: string })[];
    /** Whether these are all of the tools that the server offered. */
    isWhole: boolean;
  }
>;

/** A turn with the prompts that were sent in it. */
interface PromptedTurn {
  /** Id of its agent. */
  agent: string;
  /** In the order of its steps. */
  prompts: readonly { tools: readonly ToolSpec[] }[];
}

type Company = Pick<TroupeInput, 'agents' | 'templates' | 'tools' | 'mcpServers'>;

/** What the models of these turns were offered by the company's MCP servers. */
export function recordedServers(turns: readonly PromptedTurn[], definition: Company): RecordedServers {
  const { agents, templates = [], tools = [], mcpServers = {} } = definition;
  const own = new Set(tools.map(({ name }) => name));
  const sent = turns.flatMap(({ agent, prompts }) => prompts.map((prompt) => ({ agent, prompt })));
  const offered = new Map(sent.flatMap(({ prompt }) => prompt.tools.map((spec) => [spec.name, spec])));
  const everyone = [...agents, ...templates];
  const ids = new Set(sent.flatMap(({ agent }) => [agent, templateOf(agent) ?? agent]));
  const ofThoseWhoSpoke = new Set(
    everyone.flatMap((agent) => (ids.has(agent.id) ? (agent.tools ?? []) : [])),
  );
  const granted = new Set(everyone.flatMap((agent) => agent.tools ?? []));
  // One name may begin with another.
  const names = Object.keys(mcpServers).toSorted((a, b) => b.length - a.length);
  const byServer = Map.groupBy(
    [...offered.values()].filter(({ name }) => !own.has(name)),
    ({ name }) => names.find((server) => name.startsWith(toolName(server, ''))),
  );
  const servers = names.toSorted().map((server) => {
    const specs = (byServer.get(server) ?? []).toSorted((a, b) => (a.name < b.name ? -1 : 1));
    const isWhole = ofThoseWhoSpoke.has(`${server}/*`) && !mcpServers[server]?.tools;
    return [server, { tools: specs.map((spec) => withGrant(spec, server, granted)), isWhole }] as const;
  });
  return Object.fromEntries(servers.filter(([, { tools: specs, isWhole }]) => isWhole || specs.length > 0));
}

function withGrant(spec: ToolSpec, server: string, granted: ReadonlySet<string>) {
  const name = spec.name.slice(toolName(server, '').length);
  const extra = [...EXTRA_TOOLS].find(
    ([grant, names]) => names.includes(name) && granted.has(`${server}/${grant}`),
  );
  return { ...spec, grant: extra?.[0] ?? name };
}

/**
 * A company without its MCP servers: the recorded tools replace them, under the same grants. A granted tool that was not
 * recorded is represented by its name alone, so that its agent's tools differ from the recorded ones.
 */
export function withRecordedServers<C extends Company>(definition: C, servers: RecordedServers): C {
  const { agents, templates = [], mcpServers } = definition;
  if (!mcpServers) return definition;
  const everyone = [...agents, ...templates];
  // Problems of the result are reported when the troupe is opened.
  const [problem] = grantProblems({
    agents: everyone.map(({ tools = [] }) => ({ tools })),
    servers: mcpServers,
  });
  if (problem) return definition;
  const grants = everyone.flatMap(({ tools = [] }) => tools);
  const approvals = everyone.flatMap(({ needsApproval = [] }) => needsApproval);
  const tools = Object.entries(mcpServers).flatMap(([server, settings]) =>
    standInsOf(server, servers[server], { grants, approvals, allowed: settings.tools ?? null }),
  );
  const replaced = replaceGrants(
    { ...definition, agents: everyone },
    { tools, leftOut: [], away: new Map() },
  );
  const names = new Set(tools.map(({ name }) => name));
  const named = replaced.agents.map((agent) => withOwnApprovals(agent, names));
  return {
    ...replaced,
    agents: named.slice(0, agents.length),
    ...(definition.templates && { templates: named.slice(agents.length) }),
    mcpServers: undefined,
  };
}

/** Approvals for all tools of a server also name tools that the agent is not granted. */
function withOwnApprovals(agent: AgentInput, ofServers: ReadonlySet<string>): AgentInput {
  const { tools = [], needsApproval } = agent;
  if (!needsApproval) return agent;
  const own = needsApproval.filter((name) => tools.includes(name) || !ofServers.has(name));
  return { ...agent, needsApproval: own };
}

interface Wanted {
  grants: readonly string[];
  approvals: readonly string[];
  /** The tools that the server's settings name. Null: the settings name none. */
  allowed: readonly string[] | null;
}

/** Stands for the tools that a recording does not have. */
const MISSING_TOOL = 'not_recorded';

function standInsOf(
  server: string,
  { tools: specs, isWhole }: RecordedServers[string] = { tools: [], isWhole: false },
  { grants, approvals, allowed }: Wanted,
): McpTool[] {
  const prefix = `${server}/`;
  const granted = [...grants, ...approvals].flatMap((name) => {
    return name.startsWith(prefix) && name !== `${prefix}*` ? [name.slice(prefix.length)] : [];
  });
  const hasAll = grants.includes(`${prefix}*`);
  const named = new Set([...granted, ...(hasAll ? (allowed ?? []).filter((tool) => !isExtra(tool)) : [])]);
  // The name by which models know a tool may differ from its server's.
  const originals = new Map([...named].map((tool) => [toolName(server, tool), tool]));
  const recorded = specs
    .map(({ grant, ...spec }) => {
      const tool = isExtra(grant) ? grant : (originals.get(spec.name) ?? grant);
      return standIn(spec, { server, tool });
    })
    .filter(({ origin }) => allowed?.includes(origin.tool) ?? true);
  const missing = [...named].filter((tool) => !recorded.some(({ origin }) => origin.tool === tool));
  if (hasAll && !allowed && !isWhole) missing.push(MISSING_TOOL);
  return [...recorded, ...missing.map((tool) => placeholder({ server, tool }))];
}

function placeholder(origin: McpTool['origin']): McpTool {
  const description = 'Is not in the recording.';
  const parameters = { type: 'object', properties: {} };
  return standIn({ name: toolName(origin.server, origin.tool), description, parameters }, origin);
}

/** `bounded`, so that its recorded results keep their length. */
function standIn({ name, description, parameters }: ToolSpec, origin: McpTool['origin']): McpTool {
  const schema = z.looseObject({});
  return { ...defineTool({ name, description, schema, parameters, bounded: true, run: () => '' }), origin };
}
