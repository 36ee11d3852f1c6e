import { addressees, receiveMessage, receiveNotice } from '../../actors/conversations/messages.ts';
import { isTrusted, type PendingCount } from '../../actors/actor/engine-deps.ts';
import type { AgentRegistry } from '../../actors/actor/agent-runtime.ts';
import { isOurs } from '../../actors/log/conversation-log.ts';
import type { Redaction } from '../../actors/log/redaction.ts';
import { askedReply } from '../../actors/turn/check-reply.ts';
import { answerByReply } from '../../actors/tasks/task-commands.ts';
import { TroupeError } from '../../base/errors.ts';
import {
  type AgentId,
  AskedReply,
  type Attachment,
  type Author,
  type EventDraft,
  type EventDraftOf,
  type EventId,
  isRuntimeId,
  parseGiven,
} from '../../events/index.ts';
import type { Appended, ConversationKey, Store } from '../../store/store.ts';
import type { NewMessage } from '../troupe.ts';
import {
  fetchAttachments,
  NOTHING_ATTACHED,
  type ReadAttachments,
  readAttachments,
  redactAttachments,
} from './attachments.ts';
import { conversationId, mintId, parseDraft } from './parse-input.ts';
import type { PendingGuard, TenantContext } from './tenant-context.ts';

/** Stores a message of a client, with its attachments, and wakes the agents that it addresses. */
export async function sendMessage(
  { parts, conversations, tenant }: TenantContext,
  conversation: string,
  message: NewMessage,
): Promise<Appended> {
  const { deps, trust = null } = parts;
  const { author } = message;
  const to = addressees(deps.agents, message, null);
  const { attachments, bodies } = message.attachments?.length
    ? await readAttached(parts, message.attachments, author)
    : NOTHING_ATTACHED;
  if (message.includeInContext === false) refuseRecipients(message);
  const { readable } = parts.integrations;
  const content = readable ? await readable(message.content, nameFrom(deps.agents)) : message.content;
  const draft = draftOf({ ...message, content }, to, attachments, deps.redaction);
  const log = { tenant, conversation: conversationId(conversation) };
  const echo = isRuntimeId(draft.id) ? await findEcho(deps.store, log, draft) : null;
  if (echo) return echo;
  await parts.tenants.add(tenant);
  const untrusted = message.untrusted === true;
  // Stored before the event, so that its readers find them.
  const putBodies = async () => {
    for (const [hash, data] of bodies) await deps.store.putBody(tenant, hash, data, deps.clock.now());
  };
  if (draft.kind === 'notice') return receiveNotice(conversations, log, draft, putBodies);
  const received = { log, message: draft, untrusted };
  const receive = () =>
    receiveMessage(conversations, received, async (addressed) => {
      if (mayBeRefused(deps, addressed)) await deps.features.steering?.refuseBusy(deps, log, addressed);
      await parts.pending?.(log, addressed);
      if (bodies.size > 0) await putBodies();
    });
  const appended = await (message.forTools === undefined
    ? receive()
    : withForTools(parts, { ...log, id: draft.id }, message, receive));
  const { event } = appended;
  const isReply = event.kind === 'message' && event.replyTo !== undefined;
  if (isReply && isTrusted(trust, author) && !untrusted) await answerByReply({ ...deps, trust }, log, event);
  return appended;
}

async function readAttached(
  { deps, fetch }: TenantContext['parts'],
  given: NonNullable<NewMessage['attachments']>,
  author: Author,
): Promise<ReadAttachments> {
  const fetched = await fetchAttachments(given, fetch ?? null);
  return readAttachments(redactAttachments(fetched, author, deps.redaction));
}

function mayBeRefused({ agents }: { agents: AgentRegistry }, { to, whileBusy }: EventDraft): boolean {
  for (const agent of to) if ((whileBusy ?? agents.get(agent)?.whileBusy) === 'reject') return true;
  return false;
}

/**
 * Kept before the message is stored: an agent may begin at once. What is stored is not kept: tools read the same value in
 * every process.
 */
async function withForTools(
  { deps }: TenantContext['parts'],
  place: ConversationKey & { id: EventId },
  { forTools, storeForTools = false }: NewMessage,
  send: () => Promise<Appended>,
): Promise<Appended> {
  if (forTools === undefined || forTools === null || storeForTools) return send();
  const takeBack = deps.forTools?.set(place, forTools);
  try {
    return await send();
  } catch (error) {
    takeBack?.();
    throw error;
  }
}

/** What is stored with the message for tools. Throws `event_invalid` for what is not JSON. */
function storedForTools(
  { forTools, storeForTools, author }: NewMessage,
  redaction: Redaction | undefined,
): { forTools?: unknown } {
  if (storeForTools !== true || forTools === undefined || forTools === null) return {};
  let data: unknown;
  try {
    data = JSON.parse(JSON.stringify(forTools));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const message = `forTools: to be stored it must be JSON: ${why}; leave storeForTools out to keep it in this process`;
    throw new TroupeError('event_invalid', message, { path: 'forTools' }, { cause });
  }
  const where = { kind: 'message', author } as const;
  return { forTools: redaction ? redaction.body({ data }, where).data : data };
}

/** Most characters of a schema: it is stored with the message, and with the turn. */
const MOST_SCHEMA = 65_536;

/** Throws `event_invalid` for a schema by which no answer can be checked. */
function askedFor(reply: NonNullable<NewMessage['reply']>): { reply: AskedReply } {
  const refuse = (why: string, cause?: unknown) => {
    const message = `reply: the schema cannot be used: ${why}`;
    return new TroupeError('event_invalid', message, { path: 'reply.schema' }, { cause });
  };
  const asked = parseGiven(AskedReply, reply, 'reply', 'event_invalid');
  if (JSON.stringify(asked.schema).length > MOST_SCHEMA)
    throw refuse(`it has more than ${MOST_SCHEMA} characters`);
  try {
    askedReply(asked);
  } catch (cause) {
    throw refuse(cause instanceof Error ? cause.message : String(cause), cause);
  }
  return { reply: asked };
}

function nameFrom(agents: AgentRegistry): (pubkey: string) => string | null {
  return (pubkey) => [...agents.values()].find((agent) => agent.pubkey === pubkey)?.profile.name ?? null;
}

type Spoken = EventDraftOf<'message'> | EventDraftOf<'notice'>;

/** Throws `event_invalid` for a notice with fields about agents that should answer. */
function refuseRecipients({ to = [], whileBusy, session, forTools = null }: NewMessage): void {
  const given = {
    to: to.length > 0,
    whileBusy: whileBusy !== undefined,
    session: session !== undefined,
    forTools: forTools !== null,
  };
  const field = Object.entries(given).find(([, isGiven]) => isGiven)?.[0];
  if (field === undefined) return;
  const message = `${field}: a message with includeInContext: false reaches no agent; leave ${field} out`;
  throw new TroupeError('event_invalid', message, { path: field });
}

function draftOf(
  message: NewMessage,
  to: readonly AgentId[],
  attachments: readonly Attachment[],
  redaction: Redaction | undefined,
): Spoken {
  const {
    id = mintId(),
    author,
    content,
    replyTo,
    whileBusy,
    context,
    channel = 'library',
    session,
  } = message;
  const draft = parseDraft({
    id,
    author,
    to,
    kind: message.includeInContext === false ? 'notice' : 'message',
    body: { content, ...(attachments.length > 0 && { attachments }) },
    ...(replyTo !== undefined && { replyTo }),
    ...(whileBusy !== undefined && { whileBusy }),
    context: {
      ...(context?.attachments && { attachments: context.attachments }),
      channel,
      ...(message.storeForTools === true && storedForTools(message, redaction)),
      ...(message.reply !== undefined && askedFor(message.reply)),
      ...(session && { session: { ...session, agent: addressed(session.agent, to) } }),
    },
  });
  return (redaction?.draft(draft) ?? draft) as Spoken;
}

/** The agent whose session a message names. Throws `event_invalid` if the message does not address it. */
function addressed(agent: string, to: readonly AgentId[]): AgentId {
  const found = to.find((each) => each === agent.replace(/^@/, ''));
  if (found) return found;
  const message = `session.agent: the message must address @${agent}, by its id`;
  throw new TroupeError('event_invalid', message, { path: 'session.agent' });
}

/**
 * Clients may not use ids of the runtime, except in two cases. A gateway that returns our own message gets the stored
 * event. Null: an earlier version let a client store an event with this id, so the message is treated as a retry.
 */
async function findEcho(
  store: Pick<Store, 'readById'>,
  log: ConversationKey,
  draft: Spoken,
): Promise<Appended | null> {
  const event = await store.readById(log, draft.id);
  const isSame =
    event?.kind === 'message' &&
    draft.kind === 'message' &&
    event.author.id === draft.author.id &&
    event.body.content === draft.body.content &&
    draft.body.attachments === undefined;
  if (isSame) return { kind: 'exists', event };
  if (event && isOurs(event, draft)) return null;
  const message = `id "${draft.id}" belongs to the runtime, as all ids with a ":": leave the id out or choose one without`;
  throw new TroupeError('event_conflict', message, { id: draft.id });
}

const RETRY_AFTER_MS = 1_000;

/** Keeps a tenant from filling the shared queue. A message that is already stored always passes. */
export function createPendingGuard({
  pending,
  store,
}: {
  pending: PendingCount;
  store: Pick<Store, 'readById'>;
}): PendingGuard {
  return async function refuseFlood(log, { id, to }) {
    if (to.length === 0) return;
    const { limit } = pending;
    const waiting = await pending.of(log.tenant);
    if (waiting < limit || (await store.readById(log, id)) !== null) return;
    const message = `${waiting} agents of this tenant wait for their turn: send the message again later, with the same id`;
    throw new TroupeError('tenant_busy', message, { waiting, limit, retryAfterMs: RETRY_AFTER_MS });
  };
}
