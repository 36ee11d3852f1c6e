import { TroupeError } from '../../errors.ts';
import type { AgentId, EventDraftOf } from '../../events/index.ts';
import type { Appended, Log } from '../../store/store.ts';
import { appendHeard, appendLast, type Door } from './door.ts';
import { isHere, type Standing } from '../../machines/standing.ts';
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
  door: Door,
  log: Log,
  message: Message,
  prepare: (placed: Message) => Promise<void>,
  { untrusted = false } = {},
): Promise<Appended> {
  const standing = await door.standings.of(log);
  const { author, id } = message;
  const placed = await place(door, log, message, standing, untrusted);
  const isHeard = author.kind === 'user' && isTrusted(door.trust, author) && !untrusted;
  if (!isHeard && standing.tasks.directions.archived && (await door.deps.store.readById(log, id)) === null) {
    throw closed(log);
  }
  await prepare(placed);
  try {
    return isHeard
      ? await appendHeard(door, log, placed, standing)
      : await appendLast(door.deps, log, [placed]);
  } catch (error) {
    // Sent twice at once, and routed twice: the first counts.
    const isRouted = placed.context?.routed !== undefined;
    if (!isRouted || !(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
    return appendLast(door.deps, log, [await place(door, log, message, standing, untrusted)]);
  }
}

async function place(
  door: Door,
  log: Log,
  message: Message,
  standing: Standing,
  untrusted: boolean,
): Promise<Message> {
  const { to, routed } = await addressed(door, log, message, standing);
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
async function isMarked({ deps }: Door, log: Log, { id }: Message): Promise<boolean> {
  const known = await deps.store.readById(log, id);
  return known === null || known.context?.untrusted === true;
}

interface Addressed {
  to: AgentId[];
  routed?: NonNullable<Message['context']>['routed'];
}

async function addressed(
  { deps, router, fallback }: Door,
  log: Log,
  { id, author, to, replyTo, body }: Message,
  standing: Standing,
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
      { isHere: (agent) => isHere(standing, agent), askedAt: (agent) => standing.asked.get(agent) },
    );
    if (found.length > 0) return { to: found, routed: router.by };
  }
  return { to: fallback && isHere(standing, fallback) ? [fallback] : [] };
}

function closed({ conversation }: Log): TroupeError {
  const message = `conversation ${conversation} is archived: reopen it first`;
  return new TroupeError('conversation_archived', message, { conversation });
}
