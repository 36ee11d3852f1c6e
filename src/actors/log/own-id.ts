import { TroupeError } from '../../errors.ts';
import {
  type Event,
  type EventDraft,
  type EventId,
  type EventKind,
  isImported,
  spareId,
} from '../../events/index.ts';
import type { ConversationKey, Store } from '../../store/store.ts';

/** Spares of one id that are looked at. */
const MOST_SPARES = 100;

/** Kinds of which one may stand for another: whoever is first decides which it is. */
const EITHER: readonly (readonly EventKind[])[] = [
  ['turn.done', 'turn.failed', 'turn.aborted'],
  ['delegation.completed', 'delegation.aborted'],
];

type Draft = Pick<EventDraft, 'id' | 'kind' | 'turn' | 'author'>;

/**
 * Whether the runtime can have written `there` under the id of this draft, perhaps in other words. A client of an earlier
 * version, which could take some of these ids, said something instead; what a file brought was never the runtime's here.
 */
export function isOurs(there: Event, { kind, turn, author }: Omit<Draft, 'id'>): boolean {
  if (isImported(there) || there.turn !== turn) return false;
  if (kind === 'message')
    return there.kind === kind && there.author.kind === author.kind && there.author.id === author.id;
  return there.kind === kind || EITHER.some((kinds) => kinds.includes(kind) && kinds.includes(there.kind));
}

/**
 * Where an event of the runtime stands, or is to stand: under its id, or under the first spare of it that nothing else
 * has. The same for everybody who looks, so what is done twice or by two is there once. Throws `event_conflict`.
 */
export async function ownPlace<D extends Draft>(
  store: Pick<Store, 'readById'>,
  log: ConversationKey,
  draft: D,
): Promise<{ id: EventId; there: Event | null }> {
  for (let number = 1; number <= MOST_SPARES; number += 1) {
    const id = number === 1 ? draft.id : spareId(draft.id, number);
    const there = await store.readById(log, id);
    if (!there || isOurs(there, draft)) return { id, there };
  }
  const message = `${MOST_SPARES} spares of ${draft.id} are taken in ${log.conversation}`;
  throw new TroupeError('event_conflict', message, { id: draft.id, conversation: log.conversation });
}

/** The runtime's event under an id, or a spare of it, that a draft like this would have; null if it is not there yet. */
export async function readOwn(
  store: Pick<Store, 'readById'>,
  log: ConversationKey,
  draft: Draft,
): Promise<Event | null> {
  return (await ownPlace(store, log, draft)).there;
}
