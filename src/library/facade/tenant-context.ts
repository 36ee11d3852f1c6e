import type { SigningKey } from '../access/index.ts';
import type { ConversationDeps, MessageRouter } from '../../actors/conversations/messages.ts';
import type { Trust } from '../../actors/actor/engine-deps.ts';
import type { Engine } from '../../actors/engine/engine.ts';
import type { FeatureCommands, TurnDeps } from '../../actors/attempt/turn-run.ts';
import type { Workflow } from '../../actors/attempt/feature-types.ts';
import { TroupeError } from '../../base/errors.ts';
import type { LiveFeed, Watchers } from './live.ts';
import type { AgentId, Event, EventDraft, TenantId } from '../../events/index.ts';
import type { SafeFetch } from '../../base/net/safe-fetch.ts';
import type { Door } from '../integrations/door.ts';
import type { Integrations } from './integrations.ts';
import type { QueueWaits } from './queues.ts';
import type { ConversationKey } from '../../store/store.ts';
import type { AgentInfo, Troupe } from '../troupe.ts';
import type { Credentials, Tenants } from './credentials.ts';
import { conversationId } from './parse-input.ts';
import type { ProfileRepository } from '../troupe.ts';

/** Dependencies of the facade. */
export interface FacadeParts {
  deps: TurnDeps;
  /** The commands of features. */
  commands: FeatureCommands;
  engine: Engine;
  live: LiveFeed;
  /** Waiting times of the wakes that this process took lately, and of those that wait now. */
  waits?: (present: number[]) => QueueWaits;
  /** Agent for messages of people that have no recipient. */
  fallback: AgentId | null;
  /** Whether the agent that received the last handoff takes precedence over `fallback`. */
  sticks: boolean;
  /** Ids of the people whose messages wake agents. Default: all. */
  trust?: Trust;
  workflows?: readonly Workflow[];
  /** Chooses recipients for a message without any, before the fallback. */
  messageRouter?: MessageRouter | null;
  tenants: Tenants;
  profilesOf: (tenant: TenantId) => ProfileRepository;
  pending?: PendingGuard;
  credentials: Credentials;
  cardKey: SigningKey;
  /** Reads attachments by address. Null: such attachments are refused. */
  fetch?: SafeFetch | null;
  integrations: Pick<Integrations, 'webhooksOf' | 'agentKeys' | 'nostr' | 'readable'>;
  doors?: readonly Door[] | undefined;
  /** Events as exports show them, without secrets. Null: as they are. */
  hide: ((events: readonly Event[]) => readonly Event[]) | null;
  /** Where health and metrics are served. Default: nowhere. */
  status?: { readonly url: string | null } | null;
  /** Called once, after the engine has stopped. */
  release: () => Promise<void>;
}

/** Throws `tenant_busy` for a message that would wake an agent while too many already wait. */
export type PendingGuard = (log: ConversationKey, draft: EventDraft) => Promise<void>;

/** One tenant, and what the facades of all tenants share. */
export interface TenantContext {
  parts: FacadeParts;
  conversations: ConversationDeps;
  watchers: Watchers;
  agents: readonly AgentInfo[];
  /** Aborted when the troupe is being closed. */
  closed: AbortSignal;
  forTenant: (tenant: string) => Troupe;
  tenant: TenantId;
  close: () => Promise<void>;
}

/** Finds a conversation of the tenant that has events. Throws `conversation_unknown`. */
export async function findConversation(
  { parts, tenant }: TenantContext,
  name: string,
): Promise<ConversationKey & { head: number }> {
  const conversation = conversationId(name);
  const head = await parts.deps.store.head({ tenant, conversation });
  if (head > 0) return { tenant, conversation, head };
  throw new TroupeError('conversation_unknown', `there is no conversation "${name}"`, { conversation: name });
}
