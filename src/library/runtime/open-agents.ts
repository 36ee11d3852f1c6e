import type { ResourceStack } from '../../base/resource-stack.ts';
import { readFileSync } from 'node:fs';
import type { AgentRegistry } from '../../actors/actor/agent-runtime.ts';
import type { TroupeDefinition } from '../config/agents-file.ts';
import type { AgentDefinition } from '../config/agent-input.ts';
import { buildAgentRegistry } from '../config/build-agent-registry.ts';
import type { PolicyConstants } from '../config/context-settings.ts';
import { openInstructionFiles } from '../config/instruction-files.ts';
import { openSkills } from '../config/skills.ts';
import { countTokens } from '../../context/budget/tokens.ts';
import { TroupeError } from '../../base/errors.ts';
import { type Provider, STATELESS } from '../../providers/provider.ts';
import { isExtra, parseGrant } from '../../tools/mcp/settings.ts';
import { type McpOptions, type McpTools, replaceGrants } from '../../tools/mcp/open-mcp-tools.ts';
import type { ModelOptions, Models } from './providers.ts';
import { toolSpec } from '../../tools/tool.ts';
import { hideInTools, type ModelSettings } from './secrets.ts';

interface AgentOptions extends McpOptions, Pick<ModelSettings, 'integrations'> {
  providerOf: Models['providerOf'];
  /** URLs of the services; tools must not show their passwords. */
  urls: readonly (string | undefined)[];
  /** MCP servers are opened on it. Null: this process takes no turns and opens none. */
  opened: ResourceStack | null;
  policy?: PolicyConstants | undefined;
}

/**
 * The agents and templates of a definition with their models and tools. When tools of an MCP server come later, the
 * agents that use them are rebuilt. Throws `config_invalid`.
 */
export async function openAgents(
  definition: TroupeDefinition,
  { integrations, providerOf, urls, opened, policy, ...options }: AgentOptions,
): Promise<AgentRegistry> {
  const everyone = withTemplates(definition);
  const named = definition.agents.length;
  let arrived: () => void = () => undefined;
  const mcp = opened && (await openGranted(everyone, { ...options, onArrival: () => arrived() }, opened));
  const reading = { onWarning: options.onWarning, isTolerant: opened === null };
  const files = await openInstructionFiles(definition, reading);
  const skills = await openSkills(definition, reading);
  const hide = hideInTools({ ...everyone, integrations }, options.env, urls);

  function build(onWarning: McpOptions['onWarning'], refuse?: (problems: readonly string[]) => void) {
    const offered = mcp ? replaceGrants(everyone, mcp, refuse) : everyone;
    const granted = withoutRefusedTools(offered, providerOf, onWarning);
    return buildAgentRegistry(
      {
        ...granted,
        tools: granted.tools.map(hide),
        agents: granted.agents.slice(0, named),
        templates: granted.agents.slice(named),
      },
      providerOf,
      countTokens,
      { files, skills, away: mcp ? awayFrom(everyone, mcp.away) : new Map(), policy },
    );
  }

  const warn = onceEach(options.onWarning);
  const agents = build(warn);
  arrived = () => agents.become(build(warn, (problems) => problems.forEach((it) => warn(it, 'mcpServers'))));
  return agents;
}

/** The servers of an agent's grants that could not be used so far. */
function awayFrom({ agents }: Definition, away: ReadonlyMap<string, string>): Map<string, string[]> {
  return new Map(
    agents.map(({ id, tools }) => {
      const servers = new Set(tools.flatMap((name) => parseGrant(name)?.server ?? []));
      return [id, [...servers].filter((server) => away.has(server))];
    }),
  );
}

/** Passes each warning on once: rebuilding the agents finds the same problems again. */
function onceEach(onWarning: McpOptions['onWarning']): McpOptions['onWarning'] {
  const said = new Set<string>();
  return (problem, where) => {
    const words = `${where} ${String(problem)}`;
    if (!said.has(words) && said.add(words)) onWarning(problem, where);
  };
}

/** The definition with its templates among the agents: both need models, tools and secrets. */
export function withTemplates(definition: TroupeDefinition): TroupeDefinition {
  return { ...definition, agents: [...definition.agents, ...(definition.templates ?? [])] };
}

/** The providers of all agents; with `work` false, stand-ins that need no key. Throws `config_invalid`. */
export async function openModels(
  settings: ModelSettings,
  { work, ...options }: Omit<ModelOptions, 'readScript'> & { work: boolean },
): Promise<Models> {
  if (!work) return { providerOf: idleProvider, embedder: null, close: () => Promise.resolve() };
  const { createModels } = await import('./providers.ts');
  return await createModels(settings, { ...options, readScript });
}

function idleProvider({ provider }: AgentDefinition): Provider {
  return {
    name: provider,
    capabilities: { ...STATELESS, toolCalling: false, caching: 'none', reportsUsage: false },
    stream() {
      throw new Error('a troupe opened with work: false takes no turns');
    },
  };
}

function readScript(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TroupeError('config_invalid', `cannot read the script ${path}: ${why}`, { path }, { cause });
  }
}

type Definition = Pick<TroupeDefinition, 'agents' | 'tools' | 'mcpServers'>;

/** Leaves out tools that the vendor of an agent refuses: such a tool would fail each of its requests. */
function withoutRefusedTools(
  definition: TroupeDefinition,
  providerOf: Models['providerOf'],
  onWarning: McpOptions['onWarning'],
): TroupeDefinition {
  const tools = new Map(definition.tools.map((tool) => [tool.name, toolSpec(tool)]));
  const agents = definition.agents.map((agent) => {
    const { toolProblem } = agent.tools.some((name) => tools.has(name)) ? providerOf(agent) : {};
    if (!toolProblem) return agent;
    const refused = agent.tools.filter((name) => {
      const tool = tools.get(name);
      const problem = tool ? toolProblem(tool) : null;
      if (problem !== null) onWarning(`it is left out: ${problem}`, `tool "${name}" of @${agent.id}`);
      return problem !== null;
    });
    if (refused.length === 0) return agent;
    const kept = (names: readonly string[]) => names.filter((name) => !refused.includes(name));
    return {
      ...agent,
      tools: kept(agent.tools),
      ...(agent.needsApproval && { needsApproval: kept(agent.needsApproval) }),
    };
  });
  return { ...definition, agents };
}

/** Opens the MCP servers whose tools are granted. Null: there are none. Throws `config_invalid`. */
async function openGranted(
  { agents, mcpServers = {} }: Definition,
  options: McpOptions & { onArrival: () => void },
  opened: ResourceStack,
): Promise<McpTools | null> {
  const names = agents.flatMap(({ tools }) => tools);
  const granted = new Set(names.map((name) => parseGrant(name)?.server));
  for (const name of Object.keys(mcpServers)) {
    if (!granted.has(name))
      options.onWarning('no agent is granted its tools, so it is not started', `mcpServers.${name}`);
  }
  const wanted = Object.entries(mcpServers).filter(([name]) => granted.has(name));
  if (wanted.length === 0) return null;
  const { openMcpTools } = await import('../../tools/mcp/open-mcp-tools.ts');
  const extras = new Set(names.filter((name) => isExtra(parseGrant(name)?.tool ?? '')));
  const mcp = await openMcpTools(Object.fromEntries(wanted), { ...options, extras });
  opened.defer(() => mcp.close());
  return mcp;
}
