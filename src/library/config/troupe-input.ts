import type { AccessInput } from '../access/index.ts';
import type { RedactText } from '../../actors/log/redaction.ts';
import type { AgentId } from '../../events/index.ts';
import type { AgentInput } from './agent-input.ts';
import type { BudgetInput } from './budget-settings.ts';
import type { BuiltinTool } from '../../tools/builtin/index.ts';
import type { ContextInput } from './context-settings.ts';
import type { CoordinationInput, WorkflowInput } from './coordination-settings.ts';
import type { CustomProvider } from '../../providers/provider.ts';
import type { FetchSettings } from '../../base/net/settings.ts';
import type { FragmentInput } from '../../context/index.ts';
import type { LimitInput } from './limit-settings.ts';
import type { McpServerInput } from '../../tools/mcp/settings.ts';
import type { SupervisionSettings } from './supervision-settings.ts';
import type { Tool } from '../../tools/tool.ts';
import type { OpenApp } from './app.ts';
import type { Door, DoorName } from '../integrations/door.ts';
import type { WebhookInput } from '../integrations/webhook-settings.ts';

/** Who answers messages that name no agent. */
export interface DefaultsInput {
  /** Id of the agent for messages of people that name no agent and match no route. Default: none; they wake nobody. */
  respondWhenUnaddressed?: string | undefined;
  /**
   * Who gets such messages after a hand-over: the agent that the conversation was handed over to last (`receiver`), or
   * still `respondWhenUnaddressed` (`default`). Default `receiver`.
   */
  afterHandoff?: 'receiver' | 'default' | undefined;
}

/**
 * A definition as it is written. Fields with a default may be left out. What is wrong is `config_invalid`, with the path of
 * each problem.
 */
export interface TroupeInput extends CoordinationInput {
  /** JSON schema for editors, in a JSON file. Ignored. */
  $schema?: string | undefined;
  /** The agents, at least one. */
  agents: readonly AgentInput[];
  /** Templates of agents that the command `spawn` creates: `coder` becomes `coder-1`, `coder-2` and so on. Default: none. */
  templates?: readonly AgentInput[] | undefined;
  /** Sequences of steps that the command `run` takes a conversation through. Default: none. */
  workflows?: readonly WorkflowInput[] | undefined;
  /** Tools of the program's own, made with `defineTool`. Agents may call those that their `tools` name. Default: none. */
  tools?: readonly Tool[] | undefined;
  /**
   * Opens what tools are told as `context.app`, such as a database, when a troupe is opened: a function, which may be async. What it
   * returns is closed after the troupe, by its `Symbol.asyncDispose`, `Symbol.dispose` or `close`. Default: `app` of the agents file's
   * exports, else nothing.
   */
  app?: OpenApp | undefined;
  /** Models that the program brings, by name: made with `defineProvider`. Agents use one with `provider: 'custom', adapter: NAME`. */
  providers?: Record<string, CustomProvider> | undefined;
  /** MCP servers by name. Agents are granted their tools as `NAME/tool` or `NAME/*`. Default: none. */
  mcpServers?: Record<string, McpServerInput> | undefined;
  /** Who answers messages that name no agent. */
  defaults?: DefaultsInput | undefined;
  /** Limits of turns, tasks, waits and load. */
  limits?: LimitInput | undefined;
  /** Caps on the cost of model calls, in tokens and US dollars: per tenant, conversation and agent. Default: no caps. */
  budgets?: BudgetInput | undefined;
  /** Corrections of agents that end a turn with work left. */
  supervision?: SupervisionSettings | undefined;
  /** Sizes of prompts, and their compaction. */
  context?: ContextInput | undefined;
  /** Texts that the application adds to prompts. In a JSON file only static ones with fixed texts. Default: none. */
  fragments?: readonly FragmentInput[] | undefined;
  /**
   * Directory whose AGENTS.md, IDENTITY.md and SOUL.md are part of every agent's prompt, relative to the agents file.
   * Read again at each turn; a change begins a new epoch. Default: none are read.
   */
  workspace?: string | undefined;
  /**
   * Directories of skills, relative to the agents file: each folder in them with a SKILL.md is one. Prompts list names and
   * descriptions; the tool `load_skill`, which every agent with skills has, reads the rest. Default: none.
   */
  skills?: readonly string[] | undefined;
  /**
   * What prompts say of the machine: operating system, architecture and time zone (`system`), and the host name too
   * (`host`). For agents whose tools run there. Where workers differ, a move to another one is told. Default: nothing.
   */
  machine?: 'system' | 'host' | undefined;
  /** What agents that speak with people are told of a door, by its name in `context.channel`: what it shows, and what not. Default: nothing. */
  channels?: Record<string, string> | undefined;
  /** Goal of a handoff that names none: refused (`agent`), taken from the log (`extract`), or written by a model (`summarise`). Default `extract`. */
  handoffs?: 'agent' | 'extract' | 'summarise' | undefined;
  /** Changes every text before it is stored; must be deterministic. See `redactSecrets`. Default: no change. */
  redact?: RedactText | undefined;
  /** Tokens that an application signs for its own users, and rates. The HTTP API accepts them beside keys. */
  access?: AccessInput | undefined;
  /**
   * Protocols of other clients that the HTTP API speaks: names of doors of `@troupe/doors`, which must be installed, and doors made
   * with `defineDoor`. Default: none.
   */
  doors?: readonly (DoorName | Door)[] | undefined;
  /** Allowed targets of webhooks. Default: all public hosts. */
  webhooks?: WebhookInput | undefined;
  /** Nostr relays to listen and publish to: `NostrInput` of `@troupe/nostr`, which must be installed and validates them. Default: none. */
  nostr?: Record<string, unknown> | undefined;
  /** Allowed targets of the tool `fetch` and of attachments by address. Default: attachments by address are refused. */
  fetch?: FetchSettings | undefined;
}

/** A definition whose agents and tools the compiler knows. */
export interface KnownInput<
  Agent extends AgentInput,
  Given extends Tool,
  Template extends AgentInput,
> extends Omit<TroupeInput, 'agents' | 'templates' | 'tools'> {
  /** The agents, at least one. */
  agents: readonly Agent[];
  /** Templates of agents that the command `spawn` creates: `coder` becomes `coder-1`, `coder-2` and so on. Default: none. */
  templates?: readonly Template[] | undefined;
  /** Tools of the program's own, made with `defineTool`. Agents may call those that their `tools` name. Default: none. */
  tools?: readonly Given[] | undefined;
}

/**
 * What is asked of an agent besides its type: no names of tools and no fields that do not exist. Only what is written out is
 * checked here: what a program builds has names of the type `string`, and is checked when the troupe is opened.
 */
export type Checked<Agent, Name extends string> = Agent extends { id: infer Id; provider: infer P }
  ? AgentId extends Id
    ? unknown
    : NoOther<Agent, Extract<AgentInput, { provider: P }>> & CheckedTools<Agent, Name>
  : unknown;

type CheckedTools<Agent, Name> = Agent extends { tools: readonly (infer Granted)[] }
  ? string extends Granted
    ? unknown
    : { readonly tools: readonly (Name | BuiltinTool | `${string}/${string}`)[] }
  : unknown;

type NoOther<T, Shape> = {
  readonly [K in keyof T as K extends keyof Shape ? never : IsLeftOut<T[K]> extends true ? never : K]: {
    readonly error: `${K & string} is not a field`;
  };
};
type IsLeftOut<T> = [T] extends [undefined] ? true : false;
