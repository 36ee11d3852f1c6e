import * as z from 'zod';
import {
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

/** What MCP servers offered, by their names. */
export type RecordedServers = Record<
  string,
  {
    /** Tools, as models were offered them. `grant`: what gives it, without the name of the server. */
    tools: (ToolSpec & { grant: string })[];
    /** Whether that is all that the server offered. */
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

/** What the models of these turns were offered of the company's MCP servers. */
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
 * A company without its MCP servers: their recorded tools are in their place, under the same grants. What is granted and was
 * not recorded is there by its name alone, so that the tools of its agent differ from those of the recording.
 */
export function withRecordedServers<C extends Company>(definition: C, servers: RecordedServers): C {
  const { agents, templates = [], mcpServers } = definition;
  if (!mcpServers) return definition;
  const everyone = [...agents, ...templates];
  // What is wrong with it is found when the troupe is opened.
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

/** Approvals for all tools of a server include those that the agent is not granted. */
function withOwnApprovals(agent: AgentInput, ofServers: ReadonlySet<string>): AgentInput {
  const { tools = [], needsApproval } = agent;
  if (!needsApproval) return agent;
  const own = needsApproval.filter((name) => tools.includes(name) || !ofServers.has(name));
  return { ...agent, needsApproval: own };
}

interface Wanted {
  grants: readonly string[];
  approvals: readonly string[];
  /** The tools that the settings of the server name. Null: they name none. */
  allowed: readonly string[] | null;
}

const NOT_RECORDED = 'not_recorded';

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
  // Models know a tool by a name that may differ from its server's.
  const originals = new Map([...named].map((tool) => [toolName(server, tool), tool]));
  const recorded = specs
    .map(({ grant, ...spec }) => {
      const tool = isExtra(grant) ? grant : (originals.get(spec.name) ?? grant);
      return standIn(spec, { server, tool });
    })
    .filter(({ origin }) => allowed?.includes(origin.tool) ?? true);
  const missing = [...named].filter((tool) => !recorded.some(({ origin }) => origin.tool === tool));
  if (hasAll && !allowed && !isWhole) missing.push(NOT_RECORDED);
  return [...recorded, ...missing.map((tool) => placeholder({ server, tool }))];
}

function placeholder(origin: McpTool['origin']): McpTool {
  const description = 'Is not in the recording.';
  const parameters = { type: 'object', properties: {} };
  return standIn({ name: toolName(origin.server, origin.tool), description, parameters }, origin);
}

/** Its results are as long as they were in the conversation. */
function standIn({ name, description, parameters }: ToolSpec, origin: McpTool['origin']): McpTool {
  const schema = z.looseObject({});
  return { ...defineTool({ name, description, schema, parameters, bounded: true, run: () => '' }), origin };
}
