import type { AgentProfile, BaselineText, CompactionPolicy } from '../../context/index.ts';
import type { AgentId, BaselineBody, BusyPolicy, EventId, ToolSpec } from '../../events/index.ts';
import type { ModelPrice } from '../../providers/prices.ts';
import type { Provider } from '../../providers/provider.ts';
import type { Tool } from '../../tools/tool.ts';

/** An agent with everything it needs to work: who it is, its model and its tools. One per definition, shared by conversations. */
export interface AgentRuntime {
  profile: AgentProfile;
  /** Decides who works on what: a manager, or whom messages are routed to. What a phase asks of the others it is not told. */
  orchestrates: boolean;
  /** What it is good at. */
  capabilities: readonly string[];
  provider: Provider;
  tools: ReadonlyMap<string, Tool>;
  baseline: readonly BaselineText[];
  /** What pubkey addresses it, if any (64 hex digits). */
  pubkey: string | null;
  policy: CompactionPolicy;
  /** Of what its summary covers, how many tokens and events are found again for a turn; null: nothing. */
  retrieval: { tokens: number; limit: number } | null;
  /** Whether a model writes its summaries, and which agent's, where that is not its own. */
  summarises: boolean;
  summariser: Pick<AgentRuntime, 'provider' | 'profile' | 'price'> | null;
  /** What becomes of a message to it while it is at work, unless the message says otherwise. */
  whileBusy: BusyPolicy;
  /** How long a call waits for a server of its model that is away, ms. */
  patienceMs: number;
  /** Null for a model that is not in the list of prices, and has none of its own. */
  price: ModelPrice | null;
  /** A session that its provider has shortened by itself goes on. */
  keepsCompacted: boolean;
  /** How it is held to what it has set out to do. */
  supervision: Supervision;
  /** What its replies must be; null: words. */
  reply: ReplySchema | null;
}

/** See `SupervisionSettings`, which has what the numbers mean. */
export interface Supervision {
  idle: number;
  most: number;
  silent: boolean;
}

/** A JSON schema (draft 2020-12), and the check of a reply against it. */
export interface ReplySchema {
  schema: Record<string, unknown>;
  check(value: unknown): Promise<{ data: unknown } | { problem: string }>;
}

/** A baseline as it was frozen: what is sent until the next one, whatever the definitions say by then. */
export interface FrozenBaseline {
  id: EventId;
  body: BaselineBody;
  texts: readonly BaselineText[];
  tools: readonly ToolSpec[];
}

/** All agents; walking leaves out those of templates, which are found by their ids. */
export type AgentRegistry = ReadonlyMap<AgentId, AgentRuntime> & { readonly templates?: readonly AgentId[] };
