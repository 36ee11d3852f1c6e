import type * as z from 'zod';
import type {
  AgentId,
  Author,
  Command,
  ConversationId,
  ConversationKind,
  Event,
  PersonProfile,
  PromptRecord,
  Note,
  TenantId,
  EventOf,
  Usage,
} from '../events/index.ts';
import type { Wait, ConversationState } from '../actors/conversations/conversation-state.ts';
import type { KeyRepository, Principal, SigningKey } from './access/index.ts';
import type { ModelPrice } from '../providers/prices.ts';
import type { ActorStatus } from './inspect/actor-status.ts';
import type { BudgetLine } from '../actors/attempt/feature-types.ts';
import type { CostOptions, CostReport, TurnTrace } from './inspect/cache-cost.ts';
import type { ConversationCost, CostPart, CostSum, UnknownCost } from './inspect/conversation-cost.ts';
import type { Erased } from '../actors/erasure/erase-conversations.ts';
import type { Deleted } from '../actors/conversations/delete-conversation.ts';
import type { TurnComparison, DiffSteps, PromptDiff } from './inspect/compare-turns.ts';
import type { Inspection } from './inspect/prompts.ts';
import type { StuckQuery, StuckReport, QueueReport } from './inspect/stuck.ts';
import type { TaskInfo, TaskList, ThreadInfo } from '../actors/log/tasks.ts';
import type { ImportReport } from './import/index.ts';
import type { ImportLimits, ImportRequest } from './import/import-transcript.ts';
import type { AgentKeys, NostrStatus } from './integrations/nostr.ts';
import type { Door } from './integrations/door.ts';
import type { WebhookRepository } from './integrations/webhook-repository.ts';
import type { Asked, AttachmentByAddress, NewAttachment, NewMessage, ReadAttachment } from './message.ts';
import type { Appended, LogProblem, LogVerification } from '../store/store.ts';
import type { FoundPassage, Passage, PassagesQuery } from '../store/passages.ts';
import type { ListedStanding, NewStanding, StandingFilter, StandingOrder } from '../store/standings.ts';

/** A value with plain strings instead of ids, which are checked when the value is used. */
type Plain<T> = T extends string
  ? string extends T
    ? string
    : T extends { [z.$brand]: unknown }
      ? string
      : T
  : T extends readonly (infer U)[]
    ? readonly Plain<U>[]
    : T extends object
      ? { [K in keyof T]: Plain<T[K]> }
      : T;

/** A command of a person, with ids as strings. */
export type CommandInput = Plain<Command>;

export interface FollowOptions {
  /** Seq of the last event that is known. Default 0: from the first event. */
  after?: number | undefined;
  /** Ends the loop. */
  signal?: AbortSignal | undefined;
}

/** An agent as applications see it. */
export interface AgentInfo {
  /** Its name for messages and settings. */
  id: AgentId;
  /** Former ids, which also address it. Absent: none. */
  aliases?: readonly AgentId[];
  /** Name for people. */
  name: string;
  /** `manager`, `worker` or `peer`. */
  role: string;
  /** One line for the other agents. */
  description: string;
  /** Skills, for routing by capability. */
  capabilities: readonly string[];
  /** Name of the provider. */
  provider: string;
  /** Name of the model. */
  model: string;
  /** Names of the tools it may call. */
  tools: string[];
  /** Its second address, 64 hex digits. Null: none. */
  pubkey: string | null;
  /** Price of its model. Null: not known. */
  price: ModelPrice | null;
  /** Whether it is `defaults.respondWhenUnaddressed`: it answers messages that name nobody, unless routing or a handoff finds another. */
  isDefault: boolean;
}

/** A workflow of the definition. The command `run` begins a run of it. */
export interface WorkflowInfo {
  /** Its id. */
  id: string;
  /** Purpose of a run that names none. Null: each run has to name one. */
  directive: string | null;
  /** Its steps in their order, each with the agent that does it. */
  steps: readonly WorkflowStepInfo[];
}

interface WorkflowStepInfo {
  /** Its id. */
  id: string;
  /** Id of the agent. */
  agent: AgentId;
}

/** A prompt with its cached parts, its compactions and their reasons, and the size at which the next one happens. */
export type InspectedPrompt = PromptRecord & Inspection;

/** A past prompt. `verified`: rendering it again from the log gave exactly the bytes that were sent. */
export type SentPrompt = InspectedPrompt & {
  /** Whether the log still gives the bytes that were sent. */
  verified: boolean;
  /** Words of it were erased, so it cannot be verified. */
  erased?: true;
};

export interface ConversationInfo extends ConversationKind {
  /** Its id. */
  id: ConversationId;
  /** Seq of the last event. */
  head: number;
  /** Time of the last event, ms since the epoch. */
  at: number;
}

export interface ConversationListQuery {
  /** Most conversations of the page. Default 200. */
  limit?: number | undefined;
  /** `next` of the previous page. */
  before?: string | undefined;
  /** Only these conversations and their threads: ids, or prefixes that end with `*`. Default: all. */
  among?: readonly string[] | undefined;
  /** Only conversations that are not threads of tasks, or only threads. Default: both. */
  kind?: ConversationKind['kind'] | undefined;
}

/** A page of conversations, newest first. A page may be short or empty before the end; only `next` shows the end. */
export interface ConversationList {
  /** Newest first. */
  conversations: ConversationInfo[];
  /** Pass it as `before` to get the next page. Null: this was the last page. */
  next: string | null;
}

/** 'ok', or what is wrong. */
export interface Health {
  /** 'ok', or what is wrong with the store. */
  store: string;
  /** 'ok', or what is wrong with the queue. */
  queue: string;
}

/**
 * Receives stored events, and notes of running turns: pieces of replies, tool calls, states of machines. Notes are
 * never stored, and are provisional until the turn ends.
 */
export type Watcher = (note: Note) => void;

/** What an export holds, and how it is written. */
export interface ExportOptions {
  /** `html`: one page for reading, without threads. Default `jsonl`. */
  format?: 'jsonl' | 'html' | undefined;
  /** False: without the threads of its tasks. Default true. */
  threads?: boolean | undefined;
  /** `kept`: includes what `hideSecrets` of the definition hides. Default `hidden`. */
  secrets?: 'hidden' | 'kept' | undefined;
}

/**
 * A running troupe, for one tenant. Applications, the CLI and the HTTP API use this interface. Every method may throw a
 * `TroupeError`.
 *
 *     await using troupe = await createTroupe({ agents: [...] });
 *     await troupe.send('plan', { author: { kind: 'user', id: 'u1', name: 'Ana' }, content: 'Hello' });
 *     await troupe.idle();
 */
export interface Troupe {
  /** The tenant that all methods act for. */
  readonly tenant: TenantId;
  /**
   * The same troupe for another tenant, with the same agents and its own conversations, budgets, keys and webhooks. Cheap.
   * Closing it does nothing. Throws `event_invalid` if `tenant` is not a valid id.
   */
  forTenant(tenant: string): Troupe;
  /** Profiles of the people who write here: name, time zone, preferences. Agents see them. */
  readonly people: ProfileRepository;
  /** The state of each conversation of the tenant. */
  readonly standings: StandingRepository;
  /** The index of words over all conversations of the tenant. */
  readonly passages: PassageRepository;
  /** The webhooks of this tenant. */
  readonly webhooks: WebhookRepository;
  /** The open doors of the HTTP API. They are the same for every tenant. */
  readonly doors: readonly Door[];
  /** The Nostr keys of the agents. They belong to the root tenant and are the same for every tenant. */
  readonly agentKeys: AgentKeys;
  /** Where health, readiness and metrics of this process are served. Null: `status` of `createTroupe` was not given. */
  readonly statusUrl: string | null;
  /** State of the Nostr relays. Null: the troupe has none, or this process takes no turns. */
  nostr(): NostrStatus | null;
  /** Signs the agents' cards. It belongs to the data, and is the same for every tenant. */
  readonly cardKey: SigningKey;
  /** The API keys of this tenant. */
  readonly keys: KeyRepository;
  /**
   * The owner of an API key or of a token of `access.jwt`, of any tenant. Null: the credential is not valid. Throws
   * `store_unavailable`.
   */
  authenticate(credential: string): Promise<Principal | null>;
  /** The agents, in the order of the definition. */
  readonly agents: readonly AgentInfo[];
  /** The workflows, in the order of the definition. */
  readonly workflows: readonly WorkflowInfo[];
  /**
   * Stores a message and wakes the agents that it addresses; does not wait for their turns. A text alone is a message of
   * the user `User`. Throws `agent_unknown`, `agent_busy`, `tenant_busy`, `event_invalid`, `event_too_large`,
   * `event_conflict`, `conversation_archived`.
   */
  send(conversation: string, message: NewMessage | string): Promise<Appended>;
  /**
   * Sends a message and waits for the answer: until every agent that it woke has answered, in threads too, or until
   * nobody works on it any more because people are asked. With one agent in the troupe, `to` may be left out. Throws as
   * `send` does, and `aborted`.
   *
   *     const { text } = await troupe.ask('plan', 'What is next?');
   */
  ask(conversation: string, message: Asked, options?: AskOptions): Promise<Answer>;
  /** As `ask`, but yields what happens meanwhile; the generator returns the answer. */
  stream(conversation: string, message: Asked, options?: AskOptions): AsyncGenerator<Note, Answer>;
  /**
   * As `stream`, for an event in the log: a message, or the event that recorded a command. Begins with what has
   * followed from it so far, for readers that come back. Throws `event_invalid` if there is no such event or it wakes
   * nobody, and `aborted`.
   */
  rejoin(conversation: string, seq: number, options?: AskOptions): AsyncGenerator<Note, Answer>;
  /** The events of a conversation after `after`, then new ones as they come, without end. */
  follow(conversation: string, options?: FollowOptions): AsyncGenerator<Event, void>;
  /** The newest conversations. `limit`: default 200. */
  conversations(limit?: number): Promise<ConversationInfo[]>;
  /** A page of conversations, newest first. The cost of a page is bounded. Throws `event_invalid`. */
  listConversations(query?: ConversationListQuery): Promise<ConversationList>;
  /**
   * The methods for one conversation, without its id. Stores nothing: the conversation need not exist yet. Throws
   * `event_invalid` if `id` is not a valid id.
   *
   *     const support = troupe.conversation('support-17');
   *     const { text } = await support.ask('Where is my parcel?');
   */
  conversation(id: string): Conversation;
  /** State of a conversation: mode, run, phase and open delegations, from its log. Throws `conversation_unknown`. */
  state(conversation: string): Promise<ConversationState & { id: ConversationId; head: number }>;
  /**
   * A page of events, oldest first: those after the seq `after`, at most `limit` (default 500), and at most about
   * `maxBytes` (default 4 MiB). A short page need not be the last: the end is reached when the last event is at `head`,
   * or the page is empty. Throws `conversation_unknown`.
   */
  events(
    conversation: string,
    range?: { after?: number; limit?: number; maxBytes?: number },
  ): Promise<{ events: Event[]; head: number }>;
  /**
   * The bytes of an attachment: the one at `index`, from 0, of the message at `seq`. Throws `event_invalid` if there is none,
   * and `conversation_unknown`.
   */
  attachment(conversation: string, seq: number, index: number): Promise<ReadAttachment>;
  /**
   * Verifies a part of a conversation in the store, from the event after `after` (default 0): that seqs have no gap,
   * each content matches its hash, and the chain is intact. Continue with `next` as `after` until it is null. Throws
   * `conversation_unknown`.
   */
  verify(conversation: string, range?: { after?: number | undefined }): Promise<LogVerification>;
  /** State of each agent in a conversation. */
  actors(conversation: string): Promise<ActorStatus[]>;
  /**
   * The agent that a person's message to nobody goes to where no route matches: the one that the conversation was handed
   * over to, else `defaults.respondWhenUnaddressed`. Null: none. Throws `conversation_unknown`.
   */
  unaddressed(conversation: string): Promise<AgentId | null>;
  /**
   * The tasks of a conversation (delegations, questions, approvals), and the task whose thread it is, from its log.
   * `open`: only tasks that have not ended. `as`: a person; `decidable` then says what this person may answer or decide
   * now. Throws `conversation_unknown`.
   */
  tasks(
    conversation: string,
    options?: { open?: boolean | undefined; as?: Author | undefined },
  ): Promise<TaskList>;
  /** The prompt that an agent would get now. Nothing is sent or changed. */
  prompt(conversation: string, agent: string): Promise<InspectedPrompt>;
  /** A past prompt as it was sent. `step` counts from 1; default: the last. Throws `turn_unknown`. */
  promptOf(turn: string, step?: number): Promise<SentPrompt>;
  /**
   * Compares the prompts of two turns of one agent. With `b` = `next`: the prompt of turn `a` with the one that the agent
   * would get now. Throws `turn_unknown`, and `event_invalid` for turns of two agents.
   */
  diff(a: string, b: string, steps?: DiffSteps): Promise<PromptDiff>;
  /** Compares two turns: text, calls, tokens, cost and time. Used for a turn and its repetition. Throws `turn_unknown`. */
  compare(a: string, b: string): Promise<TurnComparison>;
  /**
   * Cost of a conversation and of the threads of its tasks, US dollars at today's prices: by agent, tool, model and
   * day, what the cache saved, and what is not known, with the reason. Throws `conversation_unknown`.
   */
  cost(conversation: string): Promise<ConversationCost>;
  /** Each model call of an agent under a vendor's cache, simulated. Slow: renders every prompt again. */
  cacheCost(conversation: string, agent: string, options?: CostOptions): Promise<CostReport>;
  /** The steps, calls and times of a turn. Throws `turn_unknown`. */
  trace(turn: string): Promise<TurnTrace>;
  /** Executes a command of a person and returns the event that records it. Throws `command_refused`, `task_unknown`. */
  command(command: CommandInput, by: Author): Promise<Event>;
  /** Imports a transcript as it streams in. Wakes no agents. Throws `import_invalid`. */
  import(
    chunks: AsyncIterable<Uint8Array | string>,
    options: ImportRequest & ImportLimits,
  ): Promise<ImportReport>;
  /**
   * A stored fold of a conversation, for readers of whole logs such as the inspector: what `saveCheckpoint` stored, if
   * it belongs to this log and this release. Null: read from the first event. Throws `conversation_unknown`.
   */
  checkpoint(conversation: string, reader: string): Promise<Checkpoint | null>;
  /**
   * Stores a checkpoint soon, replacing an earlier one. `content` is plain data that no longer changes. Throws
   * `conversation_unknown`.
   */
  saveCheckpoint(conversation: string, reader: string, checkpoint: Checkpoint): Promise<void>;
  /**
   * Yields a conversation as lines of JSON, which `import` reads, and then the threads of its tasks, one after the other. Throws
   * `conversation_unknown`.
   */
  export(conversation: string, options?: ExportOptions): AsyncGenerator<string>;
  /**
   * Deletes a conversation with its threads for good. `exported`: number of their events that the caller has exported;
   * 'none': deletes without this check. Throws `conversation_unknown`, and `command_refused` if the number is wrong, an
   * agent is at work, or the conversation is the thread of an open task.
   */
  delete(conversation: string, options: { exported: number | 'none' }): Promise<Deleted>;
  /**
   * Erases for good what a person said in the tenant, and what agents made of it: messages, attachments, answers, the
   * turns that answered the person, their tasks, summaries and tool outputs; elsewhere, repetitions of these words.
   * Erased places stay marked, and `verify` distinguishes them from alterations. Safe to repeat. Throws
   * `command_refused` while an agent is at work there.
   */
  erase(request: ErasureRequest): Promise<ErasureReceipt>;
  /** Calls `watcher` with notes of this tenant, or only of the named conversation. Returns a function that stops it. */
  watch(watcher: Watcher, of?: { conversation?: string | undefined }): () => void;
  /**
   * Waiting and running wakes: of all tenants for the root tenant, else of this one; with `own`, only of this one
   * (default false). Running and waiting turns: of this tenant, over all processes.
   */
  queues(of?: { own?: boolean | undefined }): Promise<QueueReport>;
  /**
   * Work that has not continued for too long, the longest first: turns of all processes, and agents that wait for a
   * slot; then what waits for people, as far as the inbox of a server has read the logs.
   */
  stuck(query?: StuckQuery): Promise<StuckReport>;
  /** Spent and reserved amounts of each budget in its present period. `conversation` adds the budget of that conversation. */
  budgets(of?: { conversation?: string | undefined; agent?: string | undefined }): Promise<BudgetLine[]>;
  /** Whether the store and the queue can be reached. Never throws. */
  health(): Promise<Health>;
  /**
   * Resolves when no wake is waiting or running. Turns that wait for a clock that a test moves do not count. With
   * `conversation`: when nobody works in it and in its threads. Throws `queue_unavailable` if the queue has not
   * answered for 10 s, and `conversation_unknown`.
   */
  idle(of?: { conversation?: string | undefined }): Promise<void>;
  /** Stops taking turns, waits until running ones have stopped, and closes the services. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Methods of a troupe whose first parameter is the id of a conversation. */
type OfConversation =
  | 'follow'
  | 'rejoin'
  | 'state'
  | 'events'
  | 'attachment'
  | 'verify'
  | 'actors'
  | 'tasks'
  | 'prompt'
  | 'cost'
  | 'cacheCost'
  | 'export'
  | 'delete';

type WithoutFirst<F> = F extends (first: string, ...rest: infer R) => infer V ? (...rest: R) => V : never;

type WithoutConversation<C> = C extends unknown ? Omit<C, 'conversation'> : never;

/** A conversation of a troupe. Its methods are those of `Troupe`, without the id. */
export type Conversation = { [M in keyof Pick<Troupe, OfConversation>]: WithoutFirst<Troupe[M]> } & {
  /** Its id. */
  readonly id: ConversationId;
  /** As `Troupe.send`. */
  send(message: NewMessage | string): Promise<Appended>;
  /** As `Troupe.ask`. */
  ask(message: Asked, options?: AskOptions): Promise<Answer>;
  /** As `Troupe.stream`. */
  stream(message: Asked, options?: AskOptions): AsyncGenerator<Note, Answer>;
  /** Executes a command in this conversation. As `Troupe.command`. */
  command(command: WithoutConversation<CommandInput>, by: Author): Promise<Event>;
  /** Calls `watcher` with notes of this conversation. Returns a function that stops it. */
  watch(watcher: Watcher): () => void;
  /** Resolves when nobody works in this conversation and in its threads. */
  idle(): Promise<void>;
};

/** What to erase: exactly one of `person`, `conversation` and `tenant`. */
export interface ErasureRequest {
  /** Id of the author of messages. What the person said, and what agents made of it, is replaced by marks in all conversations. */
  person?: string | undefined;
  /** Id of a conversation. It is deleted with its threads, and with the files and texts that no other conversation names. */
  conversation?: string | undefined;
  /** Id of this tenant, to confirm that all its conversations, files and profiles are to be erased. */
  tenant?: string | undefined;
  /** Who requests it, for the logs. Default: the system. */
  by?: Author | undefined;
  /** Called for each conversation that is read. For a person, each is read three times. */
  onProgress?: ((progress: { conversation: string; read: number }) => void) | undefined;
}

/** What an erasure covers. */
export type ErasureSubject = { person: string } | { conversation: string } | { wholeTenant: true };

/** What an erasure did, without the words. */
export type ErasureReceipt = Erased &
  ErasureSubject & {
    /** Id of the erasure, which its events in the logs contain. */
    id: string;
    /** Id of the tenant. */
    tenant: TenantId;
    /** When it ended, ms since the epoch. */
    at: number;
    /** What may still be in the files of the store, and until when. */
    remains: string[];
    /** Places outside the store where words may remain. */
    outside: string[];
  };

/** The state of a fold after the event at `seq`. */
export interface Checkpoint {
  /** Seq of the last event that it covers. */
  seq: number;
  /** Plain data of the reader. */
  content: unknown;
}

export type {
  Asked,
  AttachmentByAddress,
  NewAttachment,
  ReadAttachment,
  NewMessage,
  Note,
  Wait,
  ActorStatus,
  BudgetLine,
  ConversationState,
  ConversationCost,
  CostPart,
  CostOptions,
  CostReport,
  CostSum,
  Deleted,
  DiffSteps,
  ImportLimits,
  ImportRequest,
  LogProblem,
  LogVerification,
  PromptDiff,
  TurnComparison,
  TaskInfo,
  TaskList,
  ThreadInfo,
  TurnTrace,
  UnknownCost,
};
export type { FoundPassage, Passage, TermCondition } from '../store/passages.ts';
export type { ListedStanding, NewStanding, StandingOrder } from '../store/standings.ts';
export type { StuckLine, StuckQuery, StuckReport } from './inspect/stuck.ts';
export type { ProviderLoad, QueueReport, RunningLine, TurnQueue, WaitingLine } from './inspect/stuck.ts';
export type { CallPair, ComparedCall, ComparedTurn, WordChange } from './inspect/compare-turns.ts';

/** Why an agent gives no answer. */
export interface Failure {
  /** Id of the agent. */
  agent: string;
  /** Code of the error. */
  code: string;
  /** What happened, for people. */
  message: string;
}

/** The outcome of a message. */
export interface Answer<Data = unknown> {
  /** Text of the last reply of an agent. If an agent waits and has not replied, its text so far. Empty: there is none. */
  text: string;
  /** The last reply as data, if its agent has a `reply` schema. */
  data?: Data;
  /** `answered`: every agent that it woke has answered. `waiting`: for what `waits` names. `failed`: an agent gave no answer. */
  outcome: 'answered' | 'waiting' | 'failed';
  /** Messages of agents since, oldest first. */
  replies: EventOf<'message'>[];
  /** The message and all events of the conversation since, oldest first. */
  events: Event[];
  /** The tasks that wait for people, or for agents that take no turns. */
  waits: Wait[];
  /** Agents that gave no answer, and why. */
  failures: readonly Failure[];
  /** Tokens of the turns that answered, in threads too, as their providers reported them. */
  usage: Usage;
  /** US dollars at list prices or the prices of the definition. Null: a model has no price. */
  cost: number | null;
}

/** Options of `ask` and `stream`. */
export interface AskOptions {
  /** Ends the wait with the error `aborted`. The agents continue. */
  signal?: AbortSignal | undefined;
  /** Longest wait, ms, at most 24.8 days. Then `ask` throws `aborted`; the agents continue. Default: none. */
  timeoutMs?: number | undefined;
}

/** Which passages to find. */
interface PassageListQuery extends Omit<PassagesQuery, 'tenant' | 'ranges'> {
  /** Only of this conversation. */
  conversation?: string;
  /** Only of conversations whose state has one of these ranks. */
  ranks?: readonly number[];
  /** Only these conversations and their threads: ids, or prefixes that end with `*`. Default: all. */
  among?: readonly string[];
}

/** A page of passages, the newest first. */
interface PassageList {
  /** May be fewer than `limit`, or none: only `next` shows the end. */
  passages: FoundPassage[];
  /** Pass it as `after` to get the next page. Null: this was the last page. */
  next: string | null;
}

/** The index of words over all conversations of a tenant. A reader of logs stores it, such as the server's search. */
export interface PassageRepository {
  /** One page of passages that have all terms. */
  find(query: PassageListQuery): Promise<PassageList>;
  /** Stores passages of a conversation. Throws `conversation_unknown`. */
  save(conversation: string, passages: readonly Passage[]): Promise<void>;
}

/** Which states of conversations to list, and in which order. */
export interface StandingListQuery extends Omit<StandingFilter, 'tenant' | 'ranges'> {
  /** Default `urgent`: by rank, then the newest. */
  order?: StandingOrder;
  /** Most conversations of the page. Default 50. */
  limit?: number;
  /** `next` of the previous page of the same order. */
  after?: string;
  /** Only ids that begin with this. */
  prefix?: string;
  /** Only these conversations and their threads: ids, or prefixes that end with `*`. Default: all. */
  among?: readonly string[];
}

/** A page of states of conversations. */
interface StandingList {
  /** In the order asked for. */
  rows: ListedStanding[];
  /** Number of conversations by rank, over all ranks and pages. */
  counts: number[];
  /** Number of conversations with events that their stored state does not include yet. */
  behind: number;
  /** Pass it as `after` to get the next page. Null: this was the last page. */
  next: string | null;
}

/** The states of the conversations of a tenant. A reader of logs stores them, such as the server of the inbox. */
export interface StandingRepository {
  /** One page. Throws `event_invalid` for an `after` that no page returned. */
  list(query?: StandingListQuery): Promise<StandingList>;
  /** Ids of conversations whose state must be stored again, the newest first. Null: another process is doing that. */
  behind(limit: number): Promise<string[] | null>;
  /** Stores the state of one. Throws `conversation_unknown`. */
  save(conversation: string, standing: NewStanding): Promise<void>;
  /** Seq of the stored state; 0: none is stored. Its events are in the index of words. Throws `conversation_unknown`. */
  seqOf(conversation: string): Promise<number>;
}

/** The profiles of the people of one tenant, by the id of the author. They hold in all its conversations. */
export interface ProfileRepository {
  /** Null: the person has none. Throws `event_invalid`, `store_unavailable`. */
  get(person: string): Promise<PersonProfile | null>;
  /**
   * Replaces the profile. Agents see it in their next turn for this person, in other processes within seconds. Throws `event_invalid`, `store_unavailable`.
   */
  set(person: string, profile: PersonProfile): Promise<PersonProfile>;
  /** Returns false if there was none. What agents were told before stays in the log. */
  remove(person: string): Promise<boolean>;
}
