import { TroupeError } from '../../base/errors.ts';
import { userInfo } from 'node:os';
import type { Inbox, InboxQuery } from '../../http/inbox.ts';
import type { NostrStatus } from '../../library/integrations/nostr.ts';
import type { IssuedKey, KeyInfo, NewKey } from '../../library/access/index.ts';
import type { RemoteNote } from '../../http/api/client.ts';
import type { Author, Command, Event } from '../../events/index.ts';
import type { ImportReport } from '../../library/import/index.ts';
import type { NewWebhook } from '../../library/integrations/webhook.ts';
import type {
  IssuedWebhook,
  WebhookInfo,
  WebhookTest,
} from '../../library/integrations/webhook-repository.ts';
import type {
  ActorStatus,
  ConversationInfo,
  ConversationList,
  ConversationCost,
  CostOptions,
  CostReport,
  Deleted,
  ExportOptions,
  DiffSteps,
  LogVerification,
  ErasureReceipt,
  ErasureRequest,
  ImportRequest,
  InspectedPrompt,
  NewMessage,
  PromptDiff,
  QueueReport,
  SentPrompt,
  StuckQuery,
  StuckReport,
  TaskList,
  TurnComparison,
  TurnTrace,
  Troupe,
} from '../../library/troupe.ts';
import { systemClock } from '../../base/clock.ts';

/**
 * `open`: the server has accepted the stream. `gap`: events of a stream over all conversations were dropped. `reset`: the
 * conversation was deleted and begun again.
 */
export type WatchFrame =
  | { type: 'open' }
  | { type: 'event'; event: Event }
  | RemoteNote
  | { type: 'gap' }
  | { type: 'reset'; conversation: string };
export type Frame = { type: 'event'; event: Event } | RemoteNote;

/** API keys of the named tenant. Default: the caller's tenant. */
export interface ClientKeys {
  create(key: NewKey, tenant: string | undefined): Promise<IssuedKey>;
  list(tenant: string | undefined): Promise<KeyInfo[]>;
  rotate(id: string, options: { graceMs: number }, tenant: string | undefined): Promise<IssuedKey>;
  revoke(id: string, tenant: string | undefined): Promise<KeyInfo>;
}

/** Webhooks of the named tenant. Default: the caller's tenant. */
export interface ClientWebhooks {
  create(webhook: NewWebhook, tenant: string | undefined): Promise<IssuedWebhook>;
  list(tenant: string | undefined): Promise<WebhookInfo[]>;
  remove(id: string, tenant: string | undefined): Promise<WebhookInfo>;
  test(id: string, tenant: string | undefined): Promise<WebhookTest>;
  rotate(id: string, tenant: string | undefined): Promise<IssuedWebhook>;
}

/** Exactly one of the three is set. */
export type ErasureTarget = Pick<ErasureRequest, 'person' | 'conversation' | 'tenant'>;

/** A troupe, in this process or behind a URL, as commands use it. Methods throw `TroupeError`. */
export interface Client {
  /** Whether turns run in this process, which must then not exit until they are done. */
  readonly isDirect: boolean;
  send(conversation: string, message: NewMessage): Promise<Event>;
  command(command: Command, author: Author): Promise<Event>;
  conversations(): Promise<ConversationInfo[]>;
  /** One page of conversations with their state, most urgent first. */
  inbox(query?: Pick<InboxQuery, 'kind'>): Promise<Inbox>;
  /** A page of conversations, newest first. */
  listConversations(before: string | undefined): Promise<ConversationList>;
  verify(conversation: string, after: number): Promise<LogVerification>;
  actors(conversation: string): Promise<ActorStatus[]>;
  tasks(conversation: string, options: { open: boolean }): Promise<TaskList>;
  /** Seq of the last event; 0 if the conversation does not exist. */
  head(conversation: string): Promise<number>;
  /** Stored events after the seq `after`, then live ones, each once, until `signal` aborts. */
  follow(conversation: string, after: number, signal: AbortSignal): AsyncGenerator<Frame, void>;
  /** Like `follow`, with the agents' state transitions. Null: all conversations from now on. */
  watch(conversation: string | null, after: number, signal: AbortSignal): AsyncGenerator<WatchFrame, void>;
  prompt(conversation: string, agent: string): Promise<InspectedPrompt>;
  promptOf(turn: string, step?: number): Promise<SentPrompt>;
  diff(a: string, b: string, steps: DiffSteps): Promise<PromptDiff>;
  compare(a: string, b: string): Promise<TurnComparison>;
  cost(conversation: string): Promise<ConversationCost>;
  /** `onTurn` is called by direct clients only, because a server does not report progress. */
  cacheCost(conversation: string, agent: string, options: CostOptions): Promise<CostReport>;
  trace(turn: string): Promise<TurnTrace>;
  import(chunks: AsyncIterable<Uint8Array>, request: ImportRequest): Promise<ImportReport>;
  export(conversation: string, options?: ExportOptions): AsyncGenerator<string>;
  delete(conversation: string, exported: number | 'none'): Promise<Deleted>;
  /** `onProgress` is called by direct clients only. */
  erase(
    subject: ErasureTarget,
    by: Author,
    onProgress?: ErasureRequest['onProgress'],
  ): Promise<ErasureReceipt>;
  readonly people: Troupe['people'];
  readonly keys: ClientKeys;
  readonly webhooks: ClientWebhooks;
  queues(): Promise<QueueReport>;
  stuck(query: StuckQuery): Promise<StuckReport>;
  /** Null if there are no relays, or if the process takes no turns. */
  nostr(): Promise<NostrStatus | null>;
  /** Resolves when no work is left. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

/** Longest wait of a command for conversations that are not counted yet, and pause between two looks, ms. */
const READ_WITHIN_MS = 4_000;
const LOOK_MS = 100;

/**
 * Reads the inbox until every conversation is counted. Another process may be counting them, and one that has just ended may
 * still hold that task for a moment.
 */
export async function countedInbox(read: () => Promise<Inbox>): Promise<Inbox> {
  const latest = systemClock.now() + READ_WITHIN_MS;
  for (;;) {
    const inbox = await read();
    if (inbox.unread === 0 || systemClock.now() > latest) return inbox;
    await systemClock.sleep(LOOK_MS);
  }
}

/** The author of a message: the name from `--as`, else the user of this machine. */
export function authorNamed(name: string = userName()): Author {
  const id = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|(?<!-)-+$/g, '');
  if (name.trim() === '')
    throw new TroupeError('event_invalid', '--as needs a name', { path: 'author.name' });
  return { kind: 'user', id: id || 'user', name };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A process may run as a user that the system does not know.
    return 'user';
  }
}
