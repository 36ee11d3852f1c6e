import type { TroupeDefinition } from './agents-file.ts';
import { type AgentDefinition, replySchema } from './agent-input.ts';
import type { AgentRegistry, AgentRuntime, InstructionsFunction } from '../../actors/actor/agent-runtime.ts';
import { policyOf, type PolicyConstants, retrievalOf } from './context-settings.ts';
import {
  baselineTexts,
  type AgentProfile,
  NO_FRAGMENTS,
  type ToolApproval,
  windowOf,
} from '../../context/index.ts';
import { TroupeError } from '../../base/errors.ts';
import { type AgentId, type FormerIds, templateOf } from '../../events/index.ts';
import { priceOf } from '../../providers/prices.ts';
import type { Provider } from '../../providers/provider.ts';
import { answerSettingsOf } from '../../providers/settings.ts';
import { formerIds } from './former-ids.ts';
import { fragmentsOf } from './fragments.ts';
import type { InstructionFiles } from './instruction-files.ts';
import { builtinTools } from '../../tools/builtin/index.ts';
import { loadSkillTool, type SkillSet } from '../../tools/skill.ts';
import { type Tool, toolSpec } from '../../tools/tool.ts';
import { arch, hostname, platform, release } from 'node:os';

/** Tokens assumed for a model whose window is not known. */
const DEFAULT_CONTEXT_WINDOW = 128_000;

/** What was read from the directories of a definition and of its servers, by the ids of agents and templates. */
interface Surroundings {
  files?: ReadonlyMap<string, InstructionFiles>;
  skills?: ReadonlyMap<string, SkillSet>;
  /** MCP servers that agents are granted and whose tools are not known, by agent. */
  away?: ReadonlyMap<string, readonly string[]>;
  /** Constants of a test. */
  policy?: PolicyConstants | undefined;
}

/** Agents that may be rebuilt while the troupe runs. Turns that have begun keep the former ones. */
type ChangingRegistry = AgentRegistry & { become(next: ChangingRegistry): void };

/** Builds the agents that the engine runs, from their definitions, providers and tools. */
export function buildAgentRegistry(
  definition: Pick<
    TroupeDefinition,
    | 'agents'
    | 'templates'
    | 'tools'
    | 'fragments'
    | 'handoffs'
    | 'context'
    | 'supervision'
    | 'routing'
    | 'fetch'
    | 'machine'
    | 'channels'
  >,
  providerOf: (agent: AgentDefinition) => Provider,
  countTokens: (text: string) => number,
  { files = new Map(), skills = new Map(), away = new Map(), policy }: Surroundings = {},
): ChangingRegistry {
  const { agents, templates = [], context } = definition;
  const { offered, watched } = offeredTools(definition);
  const doors = channelsOf(definition.channels);
  const isLed = agents.some(({ role }) => role === 'manager');
  const grantedTo = (agent: AgentDefinition) =>
    toolsOf(agent, offered, { skills: skills.get(agent.id), away: away.get(agent.id) });
  const profileIn = profileBuilder(definition, grantedTo, skills);
  const profiles = agents.map(profileIn);
  const runtimeOf = (agent: AgentDefinition, profile: AgentProfile, roster: AgentProfile[]): AgentRuntime => {
    const granted = grantedTo(agent);
    const texts = allTextsOf(profile, roster, countTokens, {
      files: files.get(agent.id),
      skills: skills.get(agent.id),
      writer: writerOf(agent, agents),
    });
    return {
      ...texts,
      profile,
      orchestrates: agent.role === 'manager' || profile.routes === true,
      channels: agent.role === 'worker' && isLed ? new Map() : doors,
      capabilities: agent.capabilities ?? [],
      provider: checkedProvider(agent, providerOf(agent)),
      tools: new Map(granted.map((tool) => [tool.name, tool])),
      awayServers: away.get(agent.id) ?? [],
      pubkey: agent.pubkey ?? null,
      settings: { maxOutputTokens: agent.maxOutputTokens, ...answerSettingsOf(agent) },
      policy: policyOf(context, policy),
      retrieval: retrievalOf(context),
      summarises: context.summaries === 'model',
      summariser: null,
      price: agent.price ?? (agent.provider === 'scripted' ? null : priceOf(agent.model)),
      whileBusy: agent.whileBusy,
      isSupervised: agent.supervision ?? definition.supervision ?? true,
      reply: agent.reply ? replySchema(agent.reply) : null,
      watched,
    };
  };
  const runtimes = new Map<AgentId, AgentRuntime>(
    agents.map((agent, index) => [agent.id, runtimeOf(agent, profiles[index] as AgentProfile, profiles)]),
  );
  const summariser = (context.summariser && runtimes.get(context.summariser)) || null;
  for (const runtime of runtimes.values()) runtime.summariser = summariser;
  const spawn = (template: AgentDefinition) => {
    const profile = profileIn(template);
    return (id: AgentId): AgentRuntime => {
      const number = id.slice(template.id.length + 1);
      const own = { ...profile, id, name: template.name === undefined ? id : `${template.name} ${number}` };
      return { ...runtimeOf(template, own, [...profiles, own]), pubkey: null, summariser };
    };
  };
  return new TemplatedRegistry(
    runtimes,
    new Map(templates.map((template) => [template.id, spawn(template)])),
    formerIds(agents),
  );
}

function profileBuilder(
  {
    fragments = [],
    machine,
    routing,
    tools,
    agents,
    templates = [],
  }: Pick<TroupeDefinition, 'fragments' | 'machine' | 'routing' | 'tools' | 'agents' | 'templates'>,
  grantedTo: (agent: AgentDefinition) => readonly Tool[],
  skills: ReadonlyMap<string, SkillSet>,
): (agent: AgentDefinition) => AgentProfile {
  const about = machine && machineText(machine);
  const router = routing?.by === 'agent' ? routing.agent : null;
  const isAlone = agents.length + templates.length === 1;
  const isShared = tools.some(({ told }) => told === 'all');
  return (agent) => ({
    ...profileOf(agent, grantedTo(agent)),
    ...(agent.id === router && { routes: true }),
    ...(isAlone && { isAlone }),
    ...((isShared || agent.sees === 'results') && { told: true as const }),
    ...(about !== undefined && { machine: about }),
    skills: skills.get(agent.id)?.now ?? [],
    fragments: fragmentsOf(fragments, { agent: agent.id, role: agent.role }),
  });
}

/** Throws `config_invalid` for a setting that the provider cannot follow. */
function checkedProvider({ id, peers }: AgentDefinition, provider: Provider): Provider {
  if (peers === 'user' || provider.capabilities.interleavedSystem) return provider;
  const message = `peers: "system" of agent "${id}" needs a provider that takes system messages between others; ${provider.name} does not (for an openai-compatible server that does, set quirks.interleavedSystem)`;
  throw new TroupeError('config_invalid', message, { agent: id, field: 'peers' });
}

/** An agent's frozen layers. Those for threads have no handoff: a task ends with its assignee's answer. */
function allTextsOf(
  ...[profile, ...given]: Parameters<typeof textsOf>
): ReturnType<typeof textsOf> & Pick<AgentRuntime, 'inThread'> {
  const texts = textsOf(profile, ...given);
  const tools = profile.tools.filter(({ name }) => name !== 'handoff');
  if (tools.length === profile.tools.length) return texts;
  const inThread = { ...profile, tools };
  return { ...texts, inThread: { profile: inThread, ...textsOf(inThread, ...given) } };
}

/** The frozen layers. Those of an agent with instruction files or skills are rebuilt when these change. */
function textsOf(
  profile: AgentProfile,
  roster: readonly AgentProfile[],
  countTokens: (text: string) => number,
  {
    files,
    skills,
    writer,
  }: { files: InstructionFiles | undefined; skills: SkillSet | undefined; writer: Writer | null },
): Pick<AgentRuntime, 'baseline' | 'readBaseline' | 'written' | 'instructed'> {
  const present = () => ({ files: files?.now ?? [], skills: skills?.now ?? [] });
  const withPresent = (given: ReturnType<typeof present>, written?: string) => {
    const told = withWritten({ profile, roster, writer, written });
    const fragments = { ...NO_FRAGMENTS, ...profile.fragments, files: given.files };
    return baselineTexts({ ...told.profile, skills: given.skills, fragments }, told.roster, countTokens);
  };
  let known = present();
  let baseline = withPresent(known);
  const written = writer && {
    written: { write: writer.write, baseline: (text: string) => withPresent(known, text) },
  };
  const instructed = (instructions: string) => {
    const told = { ...profile, instructions };
    const fragments = { ...NO_FRAGMENTS, ...profile.fragments, files: known.files };
    return baselineTexts({ ...told, skills: known.skills, fragments }, roster, countTokens);
  };
  if (!files && !skills) return { baseline, instructed, ...written };
  return {
    baseline,
    instructed,
    ...written,
    async readBaseline() {
      await Promise.all([files?.read(), skills?.read()]);
      const now = present();
      if (now.files !== known.files || now.skills !== known.skills)
        [known, baseline] = [now, withPresent(now)];
      return baseline;
    },
  };
}

/** Profile and roster with the instructions that a function has written: the agent's own or its manager's. */
function withWritten({
  profile,
  roster,
  writer,
  written,
}: {
  profile: AgentProfile;
  roster: readonly AgentProfile[];
  writer: Writer | null;
  written: string | undefined;
}): { profile: AgentProfile; roster: readonly AgentProfile[] } {
  if (written === undefined || !writer) return { profile, roster };
  if (writer.isOwn) return { profile: { ...profile, instructions: written, written }, roster };
  const { agent } = writer;
  const told = roster.map((each) => (each.id === agent ? { ...each, instructions: written } : each));
  return { profile: { ...profile, written }, roster: told };
}

interface Writer {
  write: InstructionsFunction;
  agent: AgentId;
  isOwn: boolean;
}

/** The function that writes an agent's instructions. A worker without any inherits those of the manager, see `baseline.ts`. */
function writerOf(agent: AgentDefinition, agents: readonly AgentDefinition[]): Writer | null {
  const inherits = agent.instructions === '' && agent.role === 'worker';
  const source = inherits
    ? agents.find(({ role, instructions }) => role === 'manager' && instructions !== '')
    : agent;
  if (!source || typeof source.instructions !== 'function') return null;
  return { write: source.instructions, agent: source.id, isOwn: !inherits };
}

/** Windows of CLI programs, tokens. They choose the model and compact their sessions themselves, before this is full. */
const CLI_WINDOWS: Partial<Record<AgentDefinition['provider'], number>> = {
  'claude-code': 200_000,
  codex: 272_000,
};

/** Null: not known. Scripts have no window, whatever the name of their model. */
function knownWindow({ provider, model }: AgentDefinition): number | null {
  if (provider === 'scripted') return null;
  return windowOf(model)?.window ?? CLI_WINDOWS[provider] ?? null;
}

/** A warning for each model whose window is neither configured nor known. */
export function unknownWindows(agents: readonly AgentDefinition[]): string[] {
  const unknown = agents.filter(
    (agent) =>
      agent.contextWindow === undefined && agent.provider !== 'scripted' && knownWindow(agent) === null,
  );
  return [...new Set(unknown.map(({ model }) => model))].map(
    (model) =>
      `the window of the model "${model}" is not known: ${DEFAULT_CONTEXT_WINDOW} tokens are assumed until it refuses them; set contextWindow`,
  );
}

/** A warning for each agent whose `maxOutputTokens` is more than its model is known to give. */
export function longAnswers(agents: readonly AgentDefinition[]): string[] {
  return agents.flatMap(({ id, provider, model, maxOutputTokens }) => {
    const known = provider === 'scripted' ? null : windowOf(model);
    if (!known || maxOutputTokens <= known.maxOutput) return [];
    return `@${id}: ${model} is known to answer with at most ${known.maxOutput} tokens, and maxOutputTokens is ${maxOutputTokens}: its vendor may refuse that`;
  });
}

/** The tools of an agent, sorted, so that prompts do not depend on their order in the file. An agent with tools also gets `read_artifact`, one with skills `load_skill`. */
function toolsOf(
  agent: AgentDefinition,
  offered: ReadonlyMap<string, Tool>,
  { skills, away = [] }: { skills: SkillSet | undefined; away: readonly string[] | undefined },
): Tool[] {
  const names = new Set(agent.tools);
  if (names.size + away.length > 0 || agent.sees === 'results') names.add('read_artifact');
  const granted = [...names]
    .flatMap((name) => offered.get(name) ?? [])
    .map((tool) => (agent.needsApproval?.includes(tool.name) ? withApproval(tool) : tool));
  const all = skills ? [...granted, loadSkillTool(skills)] : granted;
  return all.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Tools that agents may be granted, by name. If an agent sees results (`watched`), it is told those of the troupe's own. */
function offeredTools({
  agents,
  templates = [],
  tools,
  handoffs = 'extract',
  fetch,
}: Pick<TroupeDefinition, 'agents' | 'templates' | 'tools' | 'handoffs' | 'fetch'>) {
  const watched = [...agents, ...templates].some(({ sees }) => sees === 'results');
  const own = watched ? tools.map((tool): Tool => (tool.told ? tool : { ...tool, told: 'results' })) : tools;
  const all = [...own, ...builtinTools(handoffs, fetch)];
  return { offered: new Map(all.map((tool): [string, Tool] => [tool.name, tool])), watched };
}

/** Every call needs approval, whatever the tool's own condition; its deciders and its deadline stay. */
function withApproval(tool: Tool): Tool {
  if (typeof tool.needsApproval !== 'object') return { ...tool, needsApproval: true };
  const { when: _, ...rest } = tool.needsApproval;
  return { ...tool, needsApproval: rest };
}

function profileOf(agent: AgentDefinition, tools: readonly Tool[]): AgentProfile {
  const { id, name = id, role, description, instructions, provider, model, maxOutputTokens, join } = agent;
  return {
    id,
    name,
    role,
    description,
    instructions: typeof instructions === 'string' ? instructions : '',
    provider,
    model,
    contextWindow: agent.contextWindow ?? knownWindow(agent) ?? DEFAULT_CONTEXT_WINDOW,
    maxOutputTokens,
    join,
    ...(agent.aliases && agent.aliases.length > 0 && { formerly: agent.aliases }),
    ...(agent.peers === 'system' && { peers: agent.peers }),
    ...(agent.framing === 'plain' && { framing: agent.framing }),
    ...(agent.sees === 'results' && { sees: agent.sees }),
    tools: tools.map(toolSpec),
    approvals: tools.flatMap(approvalOf),
  };
}

function approvalOf({ name: tool, needsApproval = false }: Tool): ToolApproval[] {
  if (needsApproval === false) return [];
  if (needsApproval === true) return [{ tool, always: true, by: null }];
  if (typeof needsApproval === 'function') return [{ tool, always: false, by: null }];
  const { when, by = [] } = needsApproval;
  return [{ tool, always: when === undefined, by: by.length > 0 ? [...by].sort() : null }];
}

/**
 * The agents of a definition and of its templates. Agents of templates are created when their id is looked up. They follow
 * from the id alone, so all processes create the same ones. Iterating yields the defined agents only.
 */
class TemplatedRegistry extends Map<AgentId, AgentRuntime> {
  #templates: ReadonlyMap<AgentId, (id: AgentId) => AgentRuntime>;
  /** Agents that `get` finds and iteration does not: those of templates, and those with former ids. */
  readonly #spawned = new Map<AgentId, AgentRuntime>();
  readonly former: FormerIds | undefined;

  constructor(
    runtimes: Iterable<readonly [AgentId, AgentRuntime]>,
    templates: ReadonlyMap<AgentId, (id: AgentId) => AgentRuntime>,
    former: FormerIds | undefined,
  ) {
    super(runtimes);
    this.#templates = templates;
    this.former = former;
    this.#name();
  }

  become(next: TemplatedRegistry): void {
    this.#templates = next.#templates;
    this.#spawned.clear();
    for (const [id, runtime] of next) this.set(id, runtime);
    this.#name();
  }

  get templates(): readonly AgentId[] {
    return [...this.#templates.keys()];
  }

  override get(id: AgentId): AgentRuntime | undefined {
    return super.get(id) ?? this.#spawned.get(id) ?? this.#spawn(id);
  }

  override has(id: AgentId): boolean {
    return this.get(id) !== undefined;
  }

  #name(): void {
    for (const [alias, id] of this.former ?? []) this.#spawned.set(alias, this.get(id) as AgentRuntime);
  }

  #spawn(id: AgentId): AgentRuntime | undefined {
    const template = templateOf(id);
    const runtime = template === null ? undefined : this.#templates.get(template)?.(id);
    if (runtime) this.#spawned.set(id, runtime);
    return runtime;
  }
}

/** Descriptions of Troupe's own doors. Programs describe theirs. */
const DOORS: Readonly<Record<string, string>> = {
  cli: 'a terminal, which shows plain text and no images',
  nostr: 'notes on Nostr relays, which are public plain text',
};

/** The descriptions of doors, by name: those of the definition first. */
function channelsOf(described: Readonly<Record<string, string>> = {}): Map<string, string> {
  return new Map(Object.entries({ ...DOORS, ...described }));
}

/** The machine on one line: system, architecture and time zone; for `host`, its name, too. */
function machineText(how: 'system' | 'host'): string {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const system = `${platform()} ${release()}, ${arch()}, time zone ${timeZone}`;
  return how === 'host' ? `${hostname()}: ${system}` : system;
}
