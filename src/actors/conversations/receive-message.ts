import { TroupeError } from '../../base/errors.ts';
import type { AgentId, EventDraftOf } from '../../events/index.ts';
import type { Appended, ConversationKey } from '../../store/store.ts';
import { appendTrusted, appendLast, type ConversationDeps } from './conversation-deps.ts';
import { directiveOf } from '../../machines/directions.ts';
import { isHere, type Participants } from '../../machines/participants.ts';
import { isTrusted } from './trust.ts';

type Message = EventDraftOf<'message'>;

/** A message on its way into a conversation. */
export interface ReceivedMessage {
  log: ConversationKey;
  message: Message;
  /** A gateway passes it on for a stranger. */
  untrusted: boolean;
}

/**
 * Stores a message. Its recipients are decided once, here.
 *  M1  A message that names agents addresses them. A new message of a person that names none is routed, else it goes to
 *      the agent that the conversation was handed over to last, or the default agent.
 *  M2  A message of an untrusted person, or one that a gateway marks `untrusted`, addresses no agent. The recipients it
 *      would have had are noted with it.
 *  M3  A closed conversation accepts messages of trusted people only; they reopen it.
 *  M4  A message with a known id is the stored event, whatever would be decided now.
 *
 * `prepare` is called with the addressed message before it is stored, and may refuse it by throwing.
 */
export async function receiveMessage(
  conversations: ConversationDeps,
  received: ReceivedMessage,
  prepare: (addressed: Message) => Promise<void>,
): Promise<Appended> {
  const { deps, participantsCache, trust } = conversations;
  const { log, message, untrusted } = received;
  const participants = await participantsCache.of(log);
  const isHeld = untrusted || !isTrusted(trust, message.author);
  const addressed = await addressMessage(conversations, received, participants, isHeld);
  const isTrustedPerson = message.author.kind === 'user' && !isHeld;
  const isClosed = !isTrustedPerson && participants.tasks.directions.archived;
  if (isClosed && (await deps.store.readById(log, message.id)) === null) throw archived(log);
  await prepare(addressed);
  try {
    return isTrustedPerson
      ? await appendTrusted(conversations, log, addressed, participants)
      : await appendLast(deps, log, [addressed]);
  } catch (error) {
    // Sent twice at once and routed differently: the first one counts.
    const isRouted = addressed.context?.routed !== undefined;
    if (!isRouted || !(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
    return appendLast(deps, log, [await addressMessage(conversations, received, participants, isHeld)]);
  }
}

/**
 * Stores a notice: for people, wakes nobody and changes nothing. Throws `conversation_archived`. `prepare` is called before
 * it is stored.
 */
export async function receiveNotice(
  { deps, participantsCache }: ConversationDeps,
  log: ConversationKey,
  notice: EventDraftOf<'notice'>,
  prepare: () => Promise<void>,
): Promise<Appended> {
  const { tasks } = await participantsCache.of(log);
  if (tasks.directions.archived && (await deps.store.readById(log, notice.id)) === null) throw archived(log);
  await prepare();
  return appendLast(deps, log, [notice]);
}

async function addressMessage(
  conversations: ConversationDeps,
  { log, message }: ReceivedMessage,
  participants: Participants,
  isHeld: boolean,
): Promise<Message> {
  const { to, routed } =
    message.to.length > 0
      ? { to: message.to, routed: undefined }
      : await recipientsOf(conversations, log, message, participants);
  const held = to.length > 0 && isHeld ? { held: to } : {};
  const mark =
    isHeld && (await isMarked(conversations.deps.store, log, message)) ? { untrusted: true as const } : {};
  const context = {
    ...message.context,
    ...(participants.tasks.directions.mode && modeIn(participants)),
    ...held,
    ...mark,
    ...(routed && { routed }),
  };
  return {
    ...message,
    to: 'held' in held ? [] : to,
    ...(Object.keys(context).length > 0 && { context }),
  };
}

/** The mode and the run of a conversation, if they are set. */
function modeIn({ tasks: { directions, directives } }: Participants): Message['context'] {
  const run = directiveOf(directions, directives)?.run;
  return { ...(directions.mode && { mode: directions.mode }), ...(run !== undefined && { run }) };
}

/** Of an author who was trusted when it was first sent, it has no mark (M4). */
async function isMarked(
  store: ConversationDeps['deps']['store'],
  log: ConversationKey,
  { id }: Message,
): Promise<boolean> {
  const known = await store.readById(log, id);
  return known === null || known.context?.untrusted === true;
}

interface Recipients {
  to: AgentId[];
  routed?: NonNullable<Message['context']>['routed'];
}

async function recipientsOf(
  { deps, router, fallback, sticks }: ConversationDeps,
  log: ConversationKey,
  { id, author, to, replyTo, body }: Message,
  participants: Participants,
): Promise<Recipients> {
  const { handedTo } = participants;
  const isNewRequest = author.kind === 'user' && replyTo === undefined;
  if (!isNewRequest) return { to };
  const known = router || (sticks && handedTo) ? await knownRecipients(deps.store, log, id) : null;
  if (known) return known;
  if (router) {
    const attachments = (body.attachments ?? []).map(({ mediaType }) => mediaType);
    const found = router.find(
      { conversation: log.conversation, author, content: body.content, attachments },
      { isHere: (agent) => isHere(participants, agent), askedAt: (agent) => participants.asked.get(agent) },
    );
    if (found.length > 0) return { to: found, routed: router.by };
  }
  const isThere = (agent: AgentId | null): agent is AgentId => agent !== null && isHere(participants, agent);
  if (sticks && isThere(handedTo)) return { to: [handedTo], routed: 'handoff' };
  return { to: isThere(fallback) ? [fallback] : [] };
}

/** Those of the message when it was first sent (M4). */
async function knownRecipients(
  store: ConversationDeps['deps']['store'],
  log: ConversationKey,
  id: Message['id'],
): Promise<Recipients | null> {
  const known = await store.readById(log, id);
  if (known?.kind !== 'message') return null;
  return { to: known.context?.held ?? known.to, routed: known.context?.routed };
}

function archived({ conversation }: ConversationKey): TroupeError {
  const message = `conversation ${conversation} is archived: reopen it first`;
  return new TroupeError('conversation_archived', message, { conversation });
}
