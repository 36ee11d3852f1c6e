import type {
  AiSdkModel,
  AnswerTimes,
  AnthropicFields,
  ModelPrice,
  QuirkSettings,
  RequestInput,
  Sampling,
  ScriptInput,
} from '../../providers/settings.ts';
import type { BusyPolicy, JoinPolicy } from '../../events/index.ts';
import type { InstructionsFunction } from '../../actors/actor/agent-runtime.ts';
import type { InputOf } from '../../base/input-of.ts';
import type { ReplyInput } from './reply-schema.ts';
import type { RetryInput } from './retry-settings.ts';
import type { SupervisionSettings } from './supervision-settings.ts';

/**
 * Fields of every agent, whatever its model. Written out because TypeScript shows no comments of inferred types; a test
 * holds them equal to the schema.
 */
export interface AgentBase {
  /** Its address in the troupe: 1 to 64 of `A-Z a-z 0-9 _ -`. */
  id: string;
  /**
   * Ids that it had before, at most 100: it is addressed by them too, and what was said, asked and left open under them is its own.
   * Default: none.
   */
  aliases?: readonly string[] | undefined;
  /** Name for people, at most 200 characters. Default: the id. */
  name?: string | undefined;
  /** What it is among the others; rosters and prompts say it. Default `peer`. */
  role?: 'manager' | 'worker' | 'peer' | undefined;
  /** One line for the other agents, shown in their rosters; at most 300 characters. Default: none. */
  description?: string | undefined;
  /** Skills, for routing by capability. Default: none. */
  capabilities?: readonly string[] | undefined;
  /**
   * What the agent is to do: a text, or a function that writes it for a conversation. The function is asked when the
   * agent's baseline is made, and its text stays until the next one. Default: none.
   */
  instructions?: string | InstructionsFunction | undefined;
  /** Directory with an AGENTS.md, IDENTITY.md or SOUL.md of its own: see `workspace` of the troupe. Default: none. */
  workspace?: string | undefined;
  /** Directories of skills of its own: see `skills` of the troupe. Default: none. */
  skills?: readonly string[] | undefined;
  /**
   * Names of the tools it may call: built-in ones such as `handoff`, those of `tools` of the troupe, and `NAME/tool` or
   * `NAME/*` of an MCP server. Default: none.
   */
  tools?: readonly string[] | undefined;
  /**
   * Tools of its `tools` each call of which waits for a person's approval: names, `SERVER/tool` or `SERVER/*`. A tool that
   * needs approval by its own definition keeps its deciders and its deadline. Default: none.
   */
  needsApproval?: readonly string[] | undefined;
  /**
   * What the agent sees of a conversation from before it joined: everything (`full`), a summary and the newest events
   * (`summary`), or only the message that woke it (`fresh`). Default `full`.
   */
  join?: JoinPolicy | undefined;
  /**
   * Role of other agents' words that a turn does not answer: `user`, or `system` where the provider takes such messages
   * between others (`capabilities.interleavedSystem`). Models give the words more weight then. Default `user`.
   */
  peers?: 'user' | 'system' | undefined;
  /**
   * How the words of others are told apart: by short marks with numbers that no author can guess (`marked`), or by lines such as
   * `From Ana:` (`plain`), for small models that copy marks into their answers. Default `marked`.
   */
  framing?: 'marked' | 'plain' | undefined;
  /**
   * What the agent is told of what others do: their words, or also what their tools and tasks brought and which of their calls were
   * approved (`results`), from the time that it is set. Such an agent gets `read_artifact`. Default `words`.
   */
  sees?: 'words' | 'results' | undefined;
  /**
   * Treatment of a message while the agent has a turn under way: it waits for the next turn (`queue`), joins the next step
   * (`steer`), aborts the turn (`interrupt`), or is refused (`reject`). A message may override it. Default `queue`.
   */
  whileBusy?: BusyPolicy | undefined;
  /** How long a call waits for a model server that is restarting or loading the model. Default: 5 minutes. */
  retry?: RetryInput | undefined;
  /** Schema of the replies, as a zod schema or a JSON schema: replies are data then. Default: plain text. */
  reply?: ReplyInput | undefined;
  /** Overrides fields of the troupe's `supervision`. */
  supervision?: SupervisionSettings | undefined;
  /** A second address, and its identity on Nostr: 64 lower-case hex digits. Default: none. */
  pubkey?: string | undefined;
}

/** Fields of every model. Keys stay in the environment; only the names of their variables are written. */
export interface ModelInput extends Sampling {
  /** Never written here: keys stay out of files. Name the variable that holds it with `apiKeyEnv`. */
  apiKey?: undefined;
  /** The vendor's name of the model. Default `default`. */
  model?: string | undefined;
  /** Tokens of prompt and answer together, at least 1,024. Default: that of a known model, else 128,000. */
  contextWindow?: number | undefined;
  /** Most tokens of an answer. Default 4,096. */
  maxOutputTokens?: number | undefined;
  /** Price of the model, if it differs from its vendor's list. In US dollars per million tokens. */
  price?: ModelPrice | undefined;
  /** Longest silence and duration of an answer, beyond which it is `provider_reply_too_long`. */
  replyLimits?: InputOf<typeof AnswerTimes> | undefined;
}

/** Fields of a model behind a command-line program that remembers the conversation. */
export interface ProgramInput extends ModelInput {
  /** Working directory, created if missing. Default: an empty directory of the agent's own. */
  cwd?: string | undefined;
  /** Names of environment variables that the program gets besides PATH. Default: no others. */
  env?: readonly string[] | undefined;
  /** The model server, if it is not the vendor's. */
  baseUrl?: string | undefined;
}

/** Answers by rules, without a model: for tests and first steps. */
export interface ScriptedAgent extends AgentBase, ModelInput {
  /** Who runs the model. */
  provider: 'scripted';
  /** Inline rules, or the path of a JSON file with them, relative to the agents file. */
  script: string | ScriptInput;
}

/** Fields of a model that is reached over HTTP, or that the program brings. */
export interface ReachedModelInput extends ModelInput, RequestInput {
  /** How much the model reasons, where it does. Default: the vendor's. */
  effort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max' | undefined;
}

/** A language model of a package of the AI SDK. */
export interface AiSdkAgent extends AgentBase, Omit<ReachedModelInput, 'model'> {
  /** Who runs the model. */
  provider: 'ai-sdk';
  /** The model, such as `bedrock('…')`. A parsed definition has its id here. */
  model: AiSdkModel | string;
  /** Set by Troupe. */
  languageModel?: AiSdkModel | undefined;
}

/** A model that the program brings with `defineProvider`. */
export interface CustomProviderAgent extends AgentBase, ReachedModelInput {
  /** Who runs the model. */
  provider: 'custom';
  /** Name of the provider in `providers` of the definition. */
  adapter: string;
}

/** Any server with a chat completions API. */
export interface CompatibleAgent extends AgentBase, ReachedModelInput {
  /** Who runs the model. */
  provider: 'openai-compatible';
  /** The server. Default `https://api.openai.com/v1`. */
  baseUrl?: string | undefined;
  /** Name of the variable that holds the key. Default `OPENAI_API_KEY`. */
  apiKeyEnv?: string | undefined;
  /** Differences of the server. Overrides what is known of its host. */
  quirks?: InputOf<typeof QuirkSettings> | undefined;
}

/** A model of Anthropic. */
export interface AnthropicAgent extends AgentBase, ModelInput, RequestInput, AnthropicFields {
  /** Who runs the model. */
  provider: 'anthropic';
  /** The server, if it is not the vendor's. */
  baseUrl?: string | undefined;
  /** Name of the variable that holds the key. Default `ANTHROPIC_API_KEY`. */
  apiKeyEnv?: string | undefined;
}

/** A model of OpenAI, with its responses API. */
export interface OpenAiAgent extends AgentBase, ReachedModelInput {
  /** Who runs the model. */
  provider: 'openai';
  /** The server. Default `https://api.openai.com/v1`. */
  baseUrl?: string | undefined;
  /** Name of the variable that holds the key. Default `OPENAI_API_KEY`. */
  apiKeyEnv?: string | undefined;
}

/** Claude Code, which runs on this machine. */
export interface ClaudeCodeAgent extends AgentBase, ProgramInput {
  /** Who runs the model. */
  provider: 'claude-code';
  /** Name of the variable that holds the key. If it is not set, the program's own login is used. Default `ANTHROPIC_API_KEY`. */
  apiKeyEnv?: string | undefined;
  /** Claude Code's own tools that this agent may use, by their names there (`Read`, `Bash`). Default: none. */
  builtinTools?: readonly string[] | undefined;
}

/** Codex, which runs on this machine. */
export interface CodexAgent extends AgentBase, ProgramInput {
  /** Who runs the model. */
  provider: 'codex';
  /** Name of the variable that holds the key. If it is not set, the program's own login is used. Default `OPENAI_API_KEY`. */
  apiKeyEnv?: string | undefined;
  /** Codex's own tools that this agent may use. Default: none. */
  builtinTools?: readonly 'shell'[] | undefined;
  /** Access of Codex's own tools to files. Default `read-only`. */
  sandbox?: 'read-only' | 'workspace-write' | 'danger-full-access' | undefined;
}

/** An agent elsewhere, reached with A2A 1.0. */
export interface A2aAgent extends AgentBase {
  /** Who runs the model. */
  provider: 'a2a';
  /** Its agent card, or the address under which `/.well-known/agent-card.json` is. */
  url: string;
  /** Name of the variable that holds the bearer token. Default: none is sent. */
  apiKeyEnv?: string | undefined;
  /** Public keys, as JSON Web Keys. Its card must be signed with one of them. Default: it need not be signed. */
  cardKeys?:
    | readonly { kty: 'EC' | 'RSA' | 'OKP'; kid?: string | undefined; [member: string]: unknown }[]
    | undefined;
}

/** An agent of a definition. `provider` says which fields it has. Fields with a default may be left out. */
export type AgentInput =
  | ScriptedAgent
  | AiSdkAgent
  | CustomProviderAgent
  | CompatibleAgent
  | AnthropicAgent
  | OpenAiAgent
  | ClaudeCodeAgent
  | CodexAgent
  | A2aAgent;
