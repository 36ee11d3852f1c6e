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

/** An agent ready to work, with its profile, model and tools. One per definition, shared by all conversations. */
export interface AgentRuntime {
  profile: AgentProfile;
  /** Distributes work: a manager, or an agent that messages are routed to. It does not get the instructions of a phase. */
  orchestrates: boolean;
  /** What is told of a door, by its name. Empty for agents that do not speak with people. */
  channels: ReadonlyMap<string, string>;
  /** Keywords for routing. */
  capabilities: readonly string[];
  provider: Provider;
  tools: ReadonlyMap<string, Tool>;
  /** Servers of its grants that could not be used so far: their tools come with the agent's next runtime. */
  awayServers: readonly string[];
  baseline: readonly BaselineText[];
  /** Present if a function of the application writes its instructions. `baseline` has none then. */
  written?: WrittenInstructions;
  /** What differs in the thread of a task. Absent: nothing does. */
  inThread?: Pick<AgentRuntime, 'profile' | 'baseline' | 'readBaseline' | 'written' | 'instructed'>;
  /** The frozen layers with other instructions. */
  instructed(text: string): readonly BaselineText[];
  /** Reads its files again and returns the frozen layers with them. Absent: no file is part of them. */
  readBaseline?: () => Promise<readonly BaselineText[]>;
  /** Nostr public key that addresses it, 64 hex digits. */
  pubkey: string | null;
  policy: CompactionPolicy;
  /** Most tokens and events that a turn retrieves from what its summary covers. Null: none. */
  retrieval: { tokens: number; limit: number } | null;
  /** Whether a model writes its summaries. */
  summarises: boolean;
  /** The agent whose model writes them. Null: its own. */
  summariser: Pick<AgentRuntime, 'provider' | 'profile' | 'price'> | null;
  /** Treatment of a message that comes during a turn and names no policy. */
  whileBusy: BusyPolicy;
  /** Null if the price of its model is unknown. */
  price: ModelPrice | null;
  /** Whether its answers are checked before a turn may end. */
  isSupervised: boolean;
  /** Schema of its replies. Null: text. */
  reply: ReplySchema | null;
  /** Whether some agent of the troupe sees results. Default: none does. */
  watched?: boolean;
}

/** What a function that writes instructions is told. `app`: as tools are told it. */
export interface AboutInstructions<App = unknown> {
  /** Id of the tenant. */
  tenant: TenantId;
  /** Id of the conversation. */
  conversation: ConversationId;
  /** Id of the agent. */
  agent: AgentId;
  /** What the application gives its tools: `app` of the options of `createTroupe`, else of the definition. */
  app: App;
}

/** Writes the instructions of an agent for one conversation. A method, so that `app` may have the type it has. */
export type InstructionsFunction = {
  write(about: AboutInstructions): string | Promise<string>;
}['write'];

export interface WrittenInstructions {
  readonly write: InstructionsFunction;
  /** The frozen layers with this text. */
  baseline(text: string): readonly BaselineText[];
}

/** A JSON schema (draft 2020-12), and the check of a reply against it. */
export interface ReplySchema {
  schema: Record<string, unknown>;
  check(value: unknown): Promise<{ data: unknown } | { problem: string }>;
}

/** A frozen baseline. It is sent until the next one replaces it, even if the agent's definition changes. */
export interface FrozenBaseline {
  id: EventId;
  body: BaselineBody;
  texts: readonly BaselineText[];
  tools: readonly ToolSpec[];
  /** What it was found unchanged for, by a turn of this process. */
  unchangedFor?: Pick<AgentRuntime, 'baseline' | 'profile'> & { mode: Mode | null };
}

/** All agents by id. Iteration leaves out agents of templates and former ids; `get` finds them. */
export type AgentRegistry = ReadonlyMap<AgentId, AgentRuntime> & {
  readonly templates?: readonly AgentId[];
  /** Absent: no agent has been renamed. */
  readonly former?: FormerIds | undefined;
};

/** The agent of a turn, which may have begun it under a former id. */
export function addressOfTurn(
  { former }: Pick<AgentRegistry, 'former'>,
  tenant: TenantId,
  { conversation, agent }: Pick<ActorAddress, 'conversation' | 'agent'>,
): ActorAddress {
  const address = { tenant, conversation, agent };
  return former ? presentAddress(former, address) : address;
}
