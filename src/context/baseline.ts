import * as z from 'zod';
import {
  AgentId,
  type BaselineBody,
  type BaselineLayer,
  type LayerName,
  type Mode,
  type ToolSpec,
  type ConversationId,
  type TenantId,
} from '../events/index.ts';
import { TEXTS } from '../events/model-texts.ts';
import { capped } from './text/cut-text.ts';
import { hashText } from './text/hash.ts';

/** The part of an agent's definition that the context module needs. */
export interface AgentProfile {
  id: AgentId;
  name: string;
  /** Former ids of the agent. Default: none. */
  formerly?: readonly AgentId[];
  role: 'manager' | 'worker' | 'peer';
  description: string;
  instructions: string;
  provider: string;
  model: string;
  contextWindow: number;
  maxOutputTokens: number;
  join: 'full' | 'summary' | 'fresh';
  /** Role of messages with other agents' words that the turn does not answer. Default: the user's role. */
  peers?: 'system';
  /** How prompts show who says what: `plain` writes lines of plain words. Default: marks. */
  framing?: 'plain';
  /** `results`: its prompts also show results of other agents' tools and tasks. Default: only their words. */
  sees?: 'results';
  /** Set if no other agent is defined. */
  isAlone?: true;
  /** Set if its prompts may show results of others, because it sees results or a tool is shared. */
  told?: true;
  tools: readonly ToolSpec[];
  /** Tools whose calls need a person's approval, by name. Default: none. */
  approvals?: readonly ToolApproval[];
  /** Set if this agent receives messages that address nobody. */
  routes?: true;
  /** Skills that it can load, by name. Default: none. */
  skills?: readonly { name: string; description: string }[];
  /** The instructions in its persona, its own or inherited ones, if a function returned them. */
  written?: string;
  /** Short description of the machine on which its tools run. Default: prompts do not mention it. */
  machine?: string;
  /** Prompt fragments that the application adds. */
  fragments?: AgentFragments;
}

/** A tool whose calls need approval: all of them, or some by their arguments. `by`: ids of who may approve; null: everybody. */
export interface ToolApproval {
  tool: string;
  always: boolean;
  by: readonly string[] | null;
}

interface LayerText {
  text: string;
  hash: string;
  /** Token count, computed on demand: most commands freeze no baseline, and loading the tokenizer takes a third of their time. */
  tokens: () => number;
  /** Hashes of the files in the text, by name, and under `instructions` that of instructions that a function returned. */
  sources?: Readonly<Record<string, string>>;
  /** The instructions that a function returned. They are stored so that later turns can compare with them. */
  given?: { hash: string; text: string };
}

export interface BaselineText extends LayerText {
  name: Extract<LayerName, 'rules' | 'persona' | 'tools' | 'environment'>;
  /** The text for chat mode, if it differs from `text`. */
  inChat?: LayerText;
}

function rulesFor({ framing, isAlone }: Pick<AgentProfile, 'framing' | 'isAlone'>): string {
  if (framing === 'plain') return isAlone ? TEXTS.system.plainRulesAlone : TEXTS.system.plainRules;
  return isAlone ? TEXTS.system.rulesAlone : TEXTS.system.rules;
}

export function baselineTexts(
  agent: AgentProfile,
  roster: readonly AgentProfile[],
  count: (text: string) => number,
): BaselineText[] {
  const layer = (text: string, given: readonly FileFragment[] = []): LayerText => {
    let tokens: number | null = null;
    const sources = Object.fromEntries(given.map((file) => [file.name, hashText(file.text)]));
    return {
      text,
      hash: hashText(text),
      tokens: () => (tokens ??= count(text)),
      ...(given.length > 0 && { sources }),
    };
  };
  const { rules, environment, files = [] } = agent.fragments ?? NO_FRAGMENTS;
  const ofRules = files.filter((file) => file.layer === 'rules');
  const ofPersona = files.filter((file) => file.layer === 'persona');
  const persona = withGiven(layer(personaText(agent, roster, 'agent', ofPersona), ofPersona), agent.written);
  const chat = personaText(agent, roster, 'chat');
  return [
    {
      name: 'rules',
      ...layer(
        [
          rulesFor(agent),
          ...(agent.told ? [TEXTS.system.told] : []),
          ...ofRules.map(fileText),
          ...rules,
        ].join('\n\n'),
        ofRules,
      ),
    },
    { name: 'persona', ...persona, ...(chat !== persona.text && { inChat: layer(chat) }) },
    { name: 'tools', ...layer(agent.tools.length === 0 ? '' : JSON.stringify(agent.tools)) },
    { name: 'environment', ...layer(environmentText(agent, roster, environment)) },
  ];
}

function withGiven(persona: LayerText, text: string | undefined): LayerText {
  if (text === undefined || text === '') return persona;
  const given = { hash: hashText(text), text };
  return { ...persona, given, sources: { ...persona.sources, instructions: given.hash } };
}

export function textsInMode(texts: readonly BaselineText[], mode: Mode | null): readonly BaselineText[] {
  if (mode !== 'chat') return texts;
  return texts.map(({ inChat, ...text }) => {
    if (!inChat) return text;
    const { sources: _, given: _given, ...rest } = text;
    return { ...rest, ...inChat };
  });
}

/**
 * Reason to freeze the baseline again, or null if it may stay. A changed roster alone is not a reason: freezing would
 * invalidate the cache of every conversation whenever an agent is added. `rosterNews` announces the change instead.
 */
export function baselineDrift(
  frozen: BaselineBody | null,
  agent: AgentProfile,
  texts: readonly BaselineText[],
  mode: Mode | null = null,
): string | null {
  if (!frozen) return 'first turn';
  if (frozen.provider !== agent.provider || frozen.model !== agent.model) return 'model changed';
  const now = textsInMode(texts, mode);
  if (sameLayers(frozen, now)) return null;
  const hashes = new Map(frozen.layers.map(({ name, hash }) => [name as string, hash]));
  const otherMode = textsInMode(texts, mode === 'chat' ? 'agent' : 'chat');
  const changed = now.flatMap(({ name, hash, sources }, index) => {
    if (hashes.get(name) === hash) return [];
    if (hashes.get(name) === otherMode[index]?.hash) return ['mode'];
    const before = frozen.layers.find((layer) => layer.name === name);
    const files = changedFiles(before?.sources, sources);
    return [files.length > 0 ? `${name} (${files.join(', ')})` : name];
  });
  return changed.every((name) => name === 'environment') ? null : `${changed.join(', ')} changed`;
}

function sameLayers({ layers }: BaselineBody, texts: readonly BaselineText[]): boolean {
  for (const [index, { name, hash }] of texts.entries())
    if (layers[index]?.name !== name || layers[index].hash !== hash) return false;
  return true;
}

function changedFiles(before: LayerText['sources'] = {}, now: LayerText['sources'] = {}): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(now)]);
  return [...names].filter((name) => before[name] !== now[name]).sort();
}

/** The current roster, if it differs from the last one announced, or without one from the frozen one. Otherwise null. */
export function rosterNews(
  frozen: BaselineBody,
  texts: readonly BaselineText[],
  announced: string | undefined,
): string | null {
  if (announced === undefined && sameLayers(frozen, texts)) return null;
  const now = texts.find(({ name }) => name === 'environment');
  if (!now) return null;
  const news = `${TEXTS.live.roster}\n${now.text}`;
  const isFrozen = frozen.layers.some(({ name, hash }) => name === now.name && hash === now.hash);
  return isFrozen && (announced === undefined || announced === news) ? null : news;
}

export function baselineBody(
  agent: AgentProfile,
  texts: readonly BaselineText[],
  { epoch, reason }: { epoch: number; reason: string },
): BaselineBody {
  const layers: BaselineLayer[] = texts.map(({ name, hash, tokens, sources }) => ({
    name,
    hash,
    tokens: tokens(),
    ...(sources && { sources }),
  }));
  return { epoch, provider: agent.provider, model: agent.model, layers, reason };
}

type Agents = readonly AgentProfile[];

/** Maximum entries of a roster, so that a thousand agents do not fill every prompt with names. */
const MAX_ROSTER = 50;

/** Maximum characters of the descriptions of all skills. If they have more, each gets an equal share. */
const MAX_SKILLS_LENGTH = 16_000;

/** Tools with which an agent addresses other agents. */
const REACHING: readonly string[] = ['handoff', 'delegate', 'ask', 'follow_up', 'cancel_task'];

function reachesOthers({ tools }: AgentProfile): boolean {
  return tools.some(({ name }) => REACHING.includes(name));
}

/**
 * Persona and environment depend on the role. A manager sees the platform and all agents. A worker without instructions
 * inherits those of the manager; it sees only managers and leaves talking to people to them. Peers see all agents. Chat mode
 * omits instructions and files. Identity and reporting lines are in every mode.
 */
function personaText(
  agent: AgentProfile,
  agents: Agents,
  mode: 'chat' | 'agent',
  files: readonly FileFragment[] = [],
): string {
  const identity = `# You are ${agent.name} (@${agent.id})`;
  const instructions = mode === 'chat' ? '' : instructionsOf(agent, agents);
  const routing = agent.routes ? TEXTS.system.router : '';
  const own = [identity, roleText(agent, agents), routing, permissionsText(agent), instructions]
    .filter(Boolean)
    .join('\n');
  return [own, ...files.map(fileText)].join('\n\n');
}

function fileText({ name, text }: FileFragment): string {
  return `# ${name}\n${text}`;
}

function roleText({ role, isAlone }: AgentProfile, agents: Agents): string {
  if (isAlone && role === 'peer') return '';
  if (role === 'manager') return TEXTS.system.manager;
  if (role === 'peer') return TEXTS.system.peer;
  const managers = managersOf(agents).map(({ id }) => `@${id}`);
  if (managers.length === 0) return TEXTS.system.worker;
  return `${TEXTS.system.worker} ${TEXTS.system.managed(managers.join(' or '))}`;
}

/** '' if no call needs an approval. */
function permissionsText({ approvals = [] }: AgentProfile): string {
  if (approvals.length === 0) return '';
  const lines = approvals.map(({ tool, always, by }) => {
    const who = by === null ? '' : ` of ${by.join(' or ')}`;
    return `${tool} (${always ? 'every call' : 'some calls, by their arguments'}${who})`;
  });
  return TEXTS.system.approvals(lines.join(', '));
}

function instructionsOf({ role, instructions }: AgentProfile, agents: Agents): string {
  if (instructions !== '' || role !== 'worker') return instructions;
  const inherited = managersOf(agents).find((manager) => manager.instructions !== '');
  return inherited
    ? `${TEXTS.system.inherited(inherited.id)}
${inherited.instructions}`
    : '';
}

function environmentText(agent: AgentProfile, agents: Agents, fragments: readonly string[]): string {
  const platform = agent.role === 'manager' ? [platformText(agent)] : [];
  const machine = agent.machine === undefined ? [] : [`# The machine\n${agent.machine}`];
  const roster = agent.isAlone ? [] : [rosterText(rosterFor(agent, agents))];
  const parts = [...platform, ...roster, ...skillsText(agent), ...machine];
  return [...parts, ...fragments].join('\n\n');
}

function skillsText({ skills = [] }: AgentProfile): string[] {
  if (skills.length === 0) return [];
  const described = skills.map(({ description }) => description.replace(/\s+/g, ' '));
  const length = described.reduce((sum, text) => sum + text.length, 0);
  const share = length > MAX_SKILLS_LENGTH ? Math.floor(MAX_SKILLS_LENGTH / skills.length) : length;
  const lines = skills.map(({ name }, at) => `- ${name}: ${capped(described[at] ?? '', share)}`);
  return [['# Skills', TEXTS.system.skills, ...lines].join('\n')];
}

function platformText(agent: AgentProfile): string {
  return reachesOthers(agent)
    ? TEXTS.system.platform
    : `${TEXTS.system.platform} ${TEXTS.system.reachesNobody}`;
}

/** A worker sees only managers, unless it can give tasks to others. */
function rosterFor(agent: AgentProfile, agents: Agents): Agents {
  if (agent.role !== 'worker' || reachesOthers(agent) || managersOf(agents).length === 0) return agents;
  return agents.filter(({ id, role }) => role === 'manager' || id === agent.id);
}

function managersOf(agents: Agents): Agents {
  return agents.filter(({ role }) => role === 'manager');
}

function rosterText(roster: Agents): string {
  const lines = roster
    .slice(0, MAX_ROSTER)
    .map(
      ({ id, name, role, description, formerly }) =>
        `- @${id}: ${name}, ${role}${formerly ? `, called @${formerly.join(' and @')} before` : ''}${description ? `. ${description}` : ''}`,
    );
  const more = roster.length > MAX_ROSTER ? [`- and ${roster.length - MAX_ROSTER} more`] : [];
  return ['# Agents here', ...lines, ...more].join('\n');
}

/**
 * Prompt fragments: text that an application adds to the prompts of its agents. A static fragment belongs to a frozen
 * layer and is evaluated when the runtime starts. A dynamic fragment is an item of the live block: it is evaluated when a
 * turn is pinned, recorded with that turn, and restated only when it changes.
 */
export interface AboutAgent {
  /** Id of the agent. */
  agent: AgentId;
  /** Its role among the others. */
  role: 'manager' | 'worker' | 'peer';
}

export interface AboutTurn {
  /** Id of the tenant. */
  tenant: TenantId;
  /** Id of the conversation. */
  conversation: ConversationId;
  /** Id of the agent. */
  agent: AgentId;
  /** Time of the event that the turn answers, ms since the epoch. */
  at: number;
}

/** Null omits the fragment. */
type StaticText = (about: AboutAgent) => string | null;
export type DynamicText = (about: AboutTurn) => string | null | Promise<string | null>;

/** Text of a file, such as `AGENTS.md`. Prompts show `name` above it. If the file changes, a new epoch names it as the cause. */
export interface FileFragment {
  layer: 'rules' | 'persona';
  name: string;
  text: string;
}

/** The fragments of one agent, each list ordered by fragment name. */
export interface AgentFragments {
  rules: readonly string[];
  environment: readonly string[];
  live: readonly { name: string; text: DynamicText }[];
  /** Texts of files, in order. Default: none. */
  files?: readonly FileFragment[];
}

export const NO_FRAGMENTS: AgentFragments = { rules: [], environment: [], live: [] };

const common = {
  /** 1 to 64 of `A-Z a-z 0-9 _ -`, beginning with a letter; unique. */
  name: z
    .string()
    .regex(
      /^[A-Za-z][A-Za-z0-9_-]{0,63}$/,
      'a fragment name is 1 to 64 of A-Z a-z 0-9 _ - and starts with a letter',
    ),
  /** Ids of the agents that receive it. Default: all. */
  agents: z.array(AgentId).min(1).optional(),
};

/** A text that an application adds to prompts. */
export const Fragment = z.discriminatedUnion('lifecycle', [
  z.strictObject({
    ...common,
    /** Evaluated once, when the runtime starts, and placed in a frozen part of prompts. */
    lifecycle: z.literal('static'),
    /** The layer that shows it. */
    layer: z.enum(['rules', 'environment']),
    /** The text, or a function that returns it; null omits the fragment. */
    text: z.union([z.string(), functionOf<StaticText>()], 'must be a text or a function that gives one'),
  }),
  z.strictObject({
    ...common,
    /** Evaluated for each turn, recorded with it, and restated only when it changes. */
    lifecycle: z.literal('dynamic'),
    /** Returns the text; null omits the fragment. */
    text: functionOf<DynamicText>('must be a function: what never changes is a static fragment'),
  }),
]);
export type Fragment = z.infer<typeof Fragment>;

function functionOf<F>(message?: string) {
  return z.custom<F>((value) => typeof value === 'function', message);
}
