import type { Clock } from '../../base/clock.ts';
import type { AgentId, Author, ConversationId, Event, EventId, LiveNote } from '../../events/index.ts';
import type { KeyValue } from '../../base/key-value.ts';
import type { Metrics } from '../../events/metrics.ts';
import type { PostAnswer } from './webhook.ts';

/**
 * Connects a troupe with another system: delivers events of the log to it, or sends its messages to agents. Runs in
 * processes that take turns, in several at once; `KeyValue.claim` decides which of them does a task.
 */
export interface Integration {
  /** Unique within a troupe. */
  readonly name: string;
  /** Environment variables with its secrets: their values are kept from tools, log lines and recordings. */
  readonly secretVariables?: readonly string[] | undefined;
  /** Called once, before `start`, in every process, also in those that take no turns, where `start` is not called. */
  attach?(host: IntegrationBase): void;
  /** Called once, when the engine runs. If it throws, the troupe is closed and `createTroupe` rejects with its error. */
  start(host: IntegrationHost): Promise<void>;
  /**
   * Replaces references of the other system in a text by readable words. Called for every message before it is stored,
   * from any door, also before `start`. Must take time in proportion to the text, and never throw.
   */
  readable?(text: string, nameOf: NameOf): Promise<string>;
  /** Shown to operators. Null before `start`. */
  status?(): unknown;
  /** Called before the store is closed, even if `start` was not called or threw. */
  close(): Promise<void>;
}

/** The name of the agent with a public key. Null: no agent has it. */
export type NameOf = (pubkey: string) => string | null;

/** The parts of the runtime that an integration may always use. */
export interface IntegrationBase {
  /** Entries of one tenant. Default: the root tenant. Integrations share them: keys start with the integration's name. */
  keyValueOf: (tenant?: string) => KeyValue;
  /** Source of time. Default: the clock of the system. */
  clock: Clock;
  /** Sends requests to addresses that others supplied. */
  outgoing: Outgoing;
}

/** Sends requests, restricted by the setting `webhooks`. */
export interface Outgoing {
  /** Throws `address_refused` for an address that is never allowed. The addresses of a name are checked at each request. */
  check(url: string): void;
  /** Sends one request. Redirects are not followed. Throws only if `signal` has aborted. */
  post(
    url: string,
    request: { headers: Readonly<Record<string, string>>; body: string },
    signal: AbortSignal,
  ): Promise<PostAnswer>;
  /** A receiver that has failed for this long gets no more requests, ms. */
  giveUpAfterMs: number;
}

/** The parts of the runtime that an integration may use from `start` on. */
export interface IntegrationHost extends IntegrationBase {
  /** Default: the root tenant. */
  troupeOf: (tenant?: string) => IntegrationTroupe;
  /** All tenants, the root included. */
  tenants: () => Promise<readonly string[]>;
  /** From 0 to 1. */
  random: () => number;
  /** Environment variables. */
  env: Readonly<Record<string, string | undefined>>;
  /** Id of this process, for claims. */
  owner: string;
  /** Receives counters and timings. */
  metrics: Pick<Metrics, 'count'>;
  /** Receives what no event records, with the place. */
  onWarning: (error: unknown, where: string) => void;
}

/** The part of `Troupe` that integrations use, for one tenant. */
export interface IntegrationTroupe {
  /** The agents. */
  readonly agents: readonly { id: AgentId; name: string; pubkey: string | null }[];
  /** Stores a message and wakes its addressees. The same id with the same content is stored once. */
  send(conversation: string, message: IncomingMessage): Promise<unknown>;
  /** Newest first, 200 by default. */
  conversations(limit?: number): Promise<{ id: ConversationId; head: number; at: number }[]>;
  /** Oldest first. A page may be short: only an event at `head` is the last. Throws `conversation_unknown`. */
  events(
    conversation: string,
    range?: { after?: number; limit?: number },
  ): Promise<{ events: Event[]; head: number }>;
  /** The agents that work or have worked in a conversation. Throws `conversation_unknown`. */
  actors(conversation: string): Promise<{ agent: AgentId; status: string }[]>;
  /** Calls `watcher` with each notice of the tenant, until the returned function is called. */
  watch(watcher: (notice: WatchNotice) => void): () => void;
}

type WatchNotice = { type: 'event'; event: Event } | Pick<LiveNote, 'type'>;

/** `NewMessage` of the public API, without attachments. */
export interface IncomingMessage {
  /** Idempotency key: a message with the same id is stored once. */
  id?: EventId | undefined;
  /** Who speaks. */
  author: Author;
  /** Agent ids or pubkeys. */
  to?: readonly string[] | undefined;
  /** The words. */
  content: string;
  /** Id of the message that it answers. */
  replyTo?: EventId | undefined;
  /** The author may not wake agents. */
  untrusted?: true | undefined;
  /** False: for people only; no agent sees it. */
  includeInContext?: boolean | undefined;
  /** A session that an addressed agent is to adopt. `refused`: the author may not name one; the log records that. */
  session?: { agent: string; provider: string; id: string; refused?: 'author' | undefined } | undefined;
  /** Name of the door, stored with the event: a short word of `a-z0-9-`. */
  channel?: string | undefined;
}
