import { TroupeError } from '../../errors.ts';
import type { AgentId, EventDraftOf } from '../../events/index.ts';
import type { Appended, ConversationKey } from '../../store/store.ts';
import { appendTrusted, appendLast, type ConversationDeps } from './conversation-deps.ts';
import { isHere, type Participants } from '../../machines/participants.ts';
import { isTrusted } from './trust.ts';

type Message = EventDraftOf<'message'>;

/**
 * Stores what somebody says, and decides once, here, whom it goes to.
 *  M1  Who names agents addresses them; a person's new message that names none is routed, else goes to the default agent.
 *  M2  What a person says who is not trusted addresses nobody; whom it would have addressed is noted with it. The same
 *      goes for what a gateway brings as `untrusted`.
 *  M3  In a closed conversation only a trusted person is heard, and opens it again.
 *  M4  The same id again is the same event, whatever would be decided now.
 *
 * `prepare` is called with what is about to be stored, and may still refuse it.
 */
export async function receiveMessage(
  door: ConversationDeps,
  log: ConversationKey,
  message: Message,
  prepare: (placed: Message) => Promise<void>,
  { untrusted = false } = {},
): Promise<Appended> {
  const participants = await door.participantsCache.of(log);
  const { author, id } = message;
  const placed = await place(door, log, message, participants, untrusted);
  const isHeard = author.kind === 'user' && isTrusted(door.trust, author) && !untrusted;
  if (
    !isHeard &&
    participants.tasks.directions.archived &&
    (await door.deps.store.readById(log, id)) === null
  ) {
    throw closed(log);
  }
  await prepare(placed);
  try {
    return isHeard
      ? await appendTrusted(door, log, placed, participants)
      : await appendLast(door.deps, log, [placed]);
  } catch (error) {
    // Sent twice at once, and routed twice: the first counts.
    const isRouted = placed.context?.routed !== undefined;
    if (!isRouted || !(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
    return appendLast(door.deps, log, [await place(door, log, message, participants, untrusted)]);
  }
}

async function place(
  door: ConversationDeps,
  log: ConversationKey,
  message: Message,
  participants: Participants,
  untrusted: boolean,
): Promise<Message> {
  const { to, routed } = await addressed(door, log, message, participants);
  const isHeld = untrusted || !isTrusted(door.trust, message.author);
  const held = to.length > 0 && isHeld ? { held: to } : {};
  const mark = isHeld && (await isMarked(door, log, message)) ? { untrusted: true as const } : {};
  const context = { ...message.context, ...held, ...mark, ...(routed && { routed }) };
  return {
    ...message,
    to: 'held' in held ? [] : to,
    ...(Object.keys(context).length > 0 && { context }),
  };
}

/** Logs of before have no mark, and the same id again is the same event (M4). */
async function isMarked({ deps }: ConversationDeps, log: ConversationKey, { id }: Message): Promise<boolean> {
  const known = await deps.store.readById(log, id);
  return known === null || known.context?.untrusted === true;
}

interface Addressed {
  to: AgentId[];
  routed?: NonNullable<Message['context']>['routed'];
}

async function addressed(
  { deps, router, fallback }: ConversationDeps,
  log: ConversationKey,
  { id, author, to, replyTo, body }: Message,
  participants: Participants,
): Promise<Addressed> {
  const isNew = author.kind === 'user' && replyTo === undefined;
  if (to.length > 0 || !isNew) return { to };
  if (router) {
    const known = await deps.store.readById(log, id);
    if (known?.kind === 'message')
      return { to: known.context?.held ?? known.to, routed: known.context?.routed };
    const attachments = (body.attachments ?? []).map(({ mediaType }) => mediaType);
    const found = router.find(
      { conversation: log.conversation, author, content: body.content, attachments },
      { isHere: (agent) => isHere(participants, agent), askedAt: (agent) => participants.asked.get(agent) },
    );
    if (found.length > 0) return { to: found, routed: router.by };
  }
  return { to: fallback && isHere(participants, fallback) ? [fallback] : [] };
}

function closed({ conversation }: ConversationKey): TroupeError {
  const message = `conversation ${conversation} is archived: reopen it first`;
  return new TroupeError('conversation_archived', message, { conversation });
}
