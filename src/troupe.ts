import type {
  AgentId,
  Author,
  BusyPolicy,
  Command,
  ConversationId,
  Event,
  EventId,
  PromptRecord,
  StateNote,
  StreamDelta,
  TenantId,
} from './events/index.ts';
import type { KeyBook, Principal } from './access/index.ts';
import type { ActorStatus } from './inspect/actor-status.ts';
import type { BudgetLine } from './actors/budget/report.ts';
import type { CostOptions, CostReport } from './inspect/cache-cost.ts';
import type { ConversationState } from './actors/conversations/conversation-state.ts';
import type { Deleted } from './actors/conversations/delete-conversation.ts';
import type { DiffSteps, PromptDiff } from './inspect/diff-turns.ts';
import type { Inspection } from './inspect/inspect-prompt.ts';
import type { TaskInfo, TaskList, ThreadInfo } from './actors/tasks/read-tasks.ts';
import type { TurnTrace } from './inspect/trace.ts';
import type { ImportReport } from './import/index.ts';
import type { AgentKeys, NostrStatus } from './integrations/nostr.ts';
import type { WebhookBook } from './integrations/webhook-book.ts';
import type { QueueDepth } from './queue/router.ts';
import type { Appended } from './store/store.ts';

/** A message as a client writes it. Without `to` it goes to the default agent, if there is one and it is no reply. */
export interface NewMessage {
  /** Idempotency key: the same id with the same payload is stored once. Minted when absent. */
  id?: EventId | undefined;
  author: Author;
  /** Agent ids or pubkeys. */
  to?: readonly string[] | undefined;
  content: string;
  /** Images are shown to models that can see them, texts up to 64 KiB are read with the message, all else is kept and named. */
  attachments?: readonly (NewAttachment | AttachmentByAddress)[] | undefined;
  replyTo?: EventId | undefined;
  /** What becomes of it where an addressed agent is at work; default: as the agent is set. `reject` throws `agent_busy`. */
  whileBusy?: BusyPolicy | undefined;
  /**
   * Its author may not wake agents: whom it would have addressed is noted with it, and the command `dispatch` passes it
   * on. For gateways that bring what strangers say.
   */
  untrusted?: true | undefined;
  /** What comes with it, as ids of the client's own: kept with the event, shown to no agent. */
  context?: { attachments?: readonly string[] | undefined } | undefined;
}

/**
 * Read from its address once, before the message is stored, where the definition has `fetch`; nothing of the address is
 * kept but a name.
 */
export interface AttachmentByAddress {
  /** Default: the last part of the address. */
  name?: string | undefined;
  /** Default: what the server says. */
  mediaType?: string | undefined;
  url: string;
}

export interface NewAttachment {
  name?: string | undefined;
  mediaType: string;
  /** A string is base64. */
  data: Uint8Array | string;
}

export interface AgentInfo {
  id: AgentId;
  name: string;
  role: string;
  description: string;
  /** What it is good at. */
  capabilities: readonly string[];
  provider: string;
  model: string;
  tools: string[];
  pubkey: string | null;
}

/** A prompt with what of it is cached, what was cut and why, and when room will be made. */
export type InspectedPrompt = PromptRecord & Inspection;

/** `verified`: rendering it again from the log gave the bytes that were sent. */
export type SentPrompt = InspectedPrompt & { verified: boolean };

export interface ConversationInfo {
  id: ConversationId;
  head: number;
  /** Time of the last event, ms. */
  at: number;
}

export interface ConversationListQuery {
  /** At most so many. Default 200. */
  limit?: number | undefined;
  /** Goes on where another page ended, by its `next`. */
  before?: string | undefined;
  /** Ids, or beginnings that end with `*`: with the threads of their tasks, as a key is granted them. */
  among?: readonly string[] | undefined;
}

/** A page of the list, newest first. It may be short, or empty, where much had to be looked through: `next` tells the end. */
export interface ConversationList {
  conversations: ConversationInfo[];
  /** For `before`; null at the end. */
  next: string | null;
}

/** Wakes of all processes; how long they waited and how many failed is of those that this one took lately. */
export interface QueueReport extends QueueDepth {
  failed?: number;
  wait?: { p50Ms: number; p95Ms: number; count: number } | null;
}

export interface Health {
  store: string;
  queue: string;
}

/** What is told as it happens: what is in the log by then, and of agents at work what is never stored. */
export type Watcher = (
  note:
    | { type: 'event'; event: Event }
    | { type: 'delta'; delta: StreamDelta }
    | { type: 'state'; state: StateNote },
) => void;

/**
 * A running troupe: what applications, the CLI and the HTTP API use. Every method may throw a `TroupeError`.
 *
 *     await using troupe = await createTroupe({ agents: [...] });
 *     await troupe.send('plan', { author: { kind: 'user', id: 'u1', name: 'Ana' }, content: 'Hello' });
 *     await troupe.idle();
 */
export interface Troupe {
  /** Whose conversations these are. */
  readonly tenant: TenantId;
  /**
   * The same troupe for another tenant: the same agents, with conversations, budgets, keys and webhooks of its own. Cheap;
   * closing it does nothing. Throws `event_invalid` for what is no id of a tenant.
   */
  forTenant(tenant: string): Troupe;
  readonly webhooks: WebhookBook;
  /** The keys with which agents sign on Nostr; of the root tenant, whoever asks. */
  readonly agentKeys: AgentKeys;
  /** How it stands with its relays; null where it has none, or this process takes no turns. */
  nostr(): NostrStatus | null;
  /** Its API keys. */
  readonly keys: KeyBook;
  /**
   * Whose an API key or a token of `access.jwt` is, of whatever tenant; null for what is none. Throws
   * `store_unavailable`.
   */
  authenticate(credential: string): Promise<Principal | null>;
  readonly agents: readonly AgentInfo[];
  send(conversation: string, message: NewMessage): Promise<Appended>;
  /** The newest, 200 by default. */
  conversations(limit?: number): Promise<ConversationInfo[]>;
  /** A page of all of them, newest first. What it costs is bounded, however many there are. Throws `event_invalid`. */
  listConversations(query?: ConversationListQuery): Promise<ConversationList>;
  /** Its mode, run, phase and open delegations, folded from the log. Throws `conversation_unknown`. */
  conversation(conversation: string): Promise<ConversationState & { id: ConversationId; head: number }>;
  /**
   * Oldest first, at most `limit` (default 500), and no more once they are 4 MiB or `maxBytes`: fewer than `limit` are
   * no sign of the end, which is where the last one is at `head`, or none came. Throws `conversation_unknown`.
   */
  events(
    conversation: string,
    range?: { after?: number; limit?: number; maxBytes?: number },
  ): Promise<{ events: Event[]; head: number }>;
  actors(conversation: string): Promise<ActorStatus[]>;
  /**
   * What agents wait for in a conversation, and the task that it is the thread of, folded from its log; `open`: what has
   * not ended. Throws `conversation_unknown`.
   */
  tasks(conversation: string, options?: { open?: boolean | undefined }): Promise<TaskList>;
  /** The prompt this agent would be sent now; nothing is sent or changed. */
  prompt(conversation: string, agent: string): Promise<InspectedPrompt>;
  /** A past prompt as it was sent; `step` counts from 1, the last by default. Throws `turn_unknown`. */
  promptOf(turn: string, step?: number): Promise<SentPrompt>;
  /**
   * What changed from the prompt of turn `a` to that of turn `b` of the same agent, or with `next` to the one it would be
   * sent now. Throws `turn_unknown`, and `event_invalid` for turns of two agents.
   */
  diff(a: string, b: string, steps?: DiffSteps): Promise<PromptDiff>;
  /** What all prompts of an agent cost with a vendor's cache, call by call. Renders each of them again. */
  cost(conversation: string, agent: string, options?: CostOptions): Promise<CostReport>;
  trace(turn: string): Promise<TurnTrace>;
  /** Accepted commands are events; returns the command's event. Throws `command_refused`, `task_unknown`. */
  command(command: Command, by: Author): Promise<Event>;
  import(
    chunks: AsyncIterable<Uint8Array | string>,
    options: ImportRequest & ImportLimits,
  ): Promise<ImportReport>;
  /** JSONL, line by line; `threads`: and the conversations of what was delegated in it, one after the other. */
  export(conversation: string, options?: { threads?: boolean | undefined }): AsyncGenerator<string>;
  /**
   * Removes a conversation with its threads, for ever. `exported` is how many events of them all the caller has kept, or
   * 'none'. Throws `conversation_unknown`, and `command_refused` where there are others by now or an agent is at work.
   */
  delete(conversation: string, options: { exported: number | 'none' }): Promise<Deleted>;
  /** Hears of its own tenant alone, and of one conversation where it is named. Returns what ends it. */
  watch(watcher: Watcher, of?: { conversation?: string | undefined }): () => void;
  /** Of all tenants for the root, of its own for every other; `own`: of its own in any case. */
  queues(of?: { own?: boolean | undefined }): Promise<QueueReport>;
  /** What is spent and held of each budget in its present period; those of a conversation where one is named. */
  budgets(of?: { conversation?: string | undefined; agent?: string | undefined }): Promise<BudgetLine[]>;
  /** Whether what this process stands on can be reached: 'ok' or what is wrong. Never throws. */
  health(): Promise<Health>;
  /** Resolves when no wake is waiting or running. Throws `queue_unavailable` once the queue has been away for 10 s. */
  idle(): Promise<void>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface ImportRequest {
  format?: string | undefined;
  /** Whose words the assistant messages become. Default `assistant`. */
  agent?: string | undefined;
  /** Id of the conversation, or stem of the ids if the file holds several. */
  conversation?: string | undefined;
  fileName?: string | undefined;
}

export interface ImportLimits {
  /** Which conversations a file may be laid in, and its tasks may lead to; default: all. */
  mayLeadTo?: ((conversation: string) => boolean) | undefined;
}

export type {
  ActorStatus,
  BudgetLine,
  ConversationState,
  CostOptions,
  CostReport,
  Deleted,
  DiffSteps,
  PromptDiff,
  StateNote,
  StreamDelta,
  TaskInfo,
  TaskList,
  ThreadInfo,
  TurnTrace,
};
