import type { AgentProfile, BaselineText, CompactionPolicy } from '../../context/index.ts';
import {
  presentAddress,
  type ActorAddress,
  type Mode,
  type AgentId,
  type BaselineBody,
  type BusyPolicy,
  type ConversationId,
  type EventId,
  type FormerIds,
  type TenantId,
  type ToolSpec,
} from '../../events/index.ts';
import type { ModelPrice } from '../../providers/prices.ts';
import type { Provider } from '../../providers/provider.ts';
import type { Tool } from '../../tools/tool.ts';

/** An agent that is ready to work, with its profile, model and tools. One per definition, shared by all conversations. */
export interface AgentRuntime {
  profile: AgentProfile;
  /** Whether it distributes work: a manager, or an agent that receives routed messages. It gets no instructions of a phase. */
  orchestrates: boolean;
  /** Text for prompts about each door, by the name of the door. Empty for agents that do not speak with people. */
  channels: ReadonlyMap<string, string>;
  /** Keywords for routing. */
  capabilities: readonly string[];
  provider: Provider;
  tools: ReadonlyMap<string, Tool>;
  /** Tool servers of its grants that could not be reached yet. Their tools come with the agent's next runtime. */
  awayServers: readonly string[];
  baseline: readonly BaselineText[];
  /** Set if a function of the application returns its instructions. `baseline` then has none. */
  written?: WrittenInstructions;
  /** Values that differ in the thread of a task. Absent if none does. */
  inThread?: Pick<AgentRuntime, 'profile' | 'baseline' | 'readBaseline' | 'written' | 'instructed'>;
  /** The frozen layers with other instructions. */
  instructed(text: string): readonly BaselineText[];
  /** Reads its files again and returns the frozen layers with them. Absent if the layers contain no file. */
  readBaseline?: () => Promise<readonly BaselineText[]>;
  /** Nostr public key that addresses it, 64 hex digits. */
  pubkey: string | null;
  policy: CompactionPolicy;
  /** Maximum tokens and events that a turn retrieves from those that its summary covers. Null: no retrieval. */
  retrieval: { tokens: number; limit: number } | null;
  /** Whether a model writes its summaries. */
  summarises: boolean;
  /** The agent whose model writes its summaries. Null: its own model does. */
  summariser: Pick<AgentRuntime, 'provider' | 'profile' | 'price'> | null;
  /** Policy for a message that arrives during a turn and names no policy. */
  whileBusy: BusyPolicy;
  /** What its model is asked with. For people: providers have their own copy. */
  settings: AnswerSettings;
  /** Price of its model; null if unknown. */
  price: ModelPrice | null;
  /** Whether its answers are checked before a turn may end. */
  isSupervised: boolean;
  /** Schema of its replies. Null: replies are text. */
  reply: ReplySchema | null;
  /** Whether any agent of the troupe sees results of others. Default: false. */
  watched?: boolean;
}

/** The settings of a model in an agent's definition. A field that is left out is the vendor's default. */
export interface AnswerSettings {
  /** Most tokens of one answer. */
  maxOutputTokens: number;
  /** How freely words are chosen; 0: the likeliest. */
  temperature?: number | undefined;
  /** Words are chosen from the likeliest that make up this share, 0 to 1. */
  topP?: number | undefined;
  /** The same seed gives the same answer where the vendor can. */
  seed?: number | undefined;
  /** Texts at which an answer ends. */
  stop?: readonly string[] | undefined;
  /** Tokens for thinking, or as the model chooses. */
  thinking?: 'adaptive' | number | undefined;
  /** How much the model thinks, in the vendor's words. */
  effort?: string | undefined;
}

/** Argument of a function that returns instructions. */
export interface AboutInstructions<App = unknown> {
  /** Id of the tenant. */
  tenant: TenantId;
  /** Id of the conversation. */
  conversation: ConversationId;
  /** Id of the agent. */
  agent: AgentId;
  /** The value that tools get too: `app` of the options of `createTroupe`, otherwise of the definition. */
  app: App;
}

/** Returns the instructions of an agent for one conversation. Declared as a method, so that `app` may have a narrower type. */
export type InstructionsFunction = {
  write(about: AboutInstructions): string | Promise<string>;
}['write'];

export interface WrittenInstructions {
  readonly write: InstructionsFunction;
  /** The frozen layers with this text. */
  baseline(text: string): readonly BaselineText[];
}

/** A JSON schema (draft 2020-12), and a function that checks a reply against it. */
export interface ReplySchema {
  schema: Record<string, unknown>;
  check(value: unknown): Promise<{ data: unknown } | { problem: string }>;
}

/** A frozen baseline. It is sent until another one replaces it, even if the agent's definition changes. */
export interface FrozenBaseline {
  id: EventId;
  body: BaselineBody;
  texts: readonly BaselineText[];
  tools: readonly ToolSpec[];
  /** The definition and mode with which a turn of this process compared it last and found it unchanged. */
  unchangedFor?: Pick<AgentRuntime, 'baseline' | 'profile'> & { mode: Mode | null };
}

/** All agents by id. `get` also finds agents of templates and former ids, which iteration leaves out. */
export type AgentRegistry = ReadonlyMap<AgentId, AgentRuntime> & {
  readonly templates?: readonly AgentId[];
  /** Former ids. Absent if no agent has been renamed. */
  readonly former?: FormerIds | undefined;
};

/** The address of the agent of a turn, under its present id, even if the turn began under a former one. */
export function addressOfTurn(
  { former }: Pick<AgentRegistry, 'former'>,
  tenant: TenantId,
  { conversation, agent }: Pick<ActorAddress, 'conversation' | 'agent'>,
): ActorAddress {
  const address = { tenant, conversation, agent };
  return former ? presentAddress(former, address) : address;
}
