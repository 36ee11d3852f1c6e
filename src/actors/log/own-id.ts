import { TroupeError } from '../../base/errors.ts';
import {
  type Event,
  type EventDraft,
  type EventId,
  type EventKind,
  isImported,
  spareId,
} from '../../events/index.ts';
import type { ConversationKey, Store } from '../../store/store.ts';

/** Most spare ids tried for one id. */
const MOST_SPARES = 100;

/** Kinds that share one id: the first write decides the kind. */
const EITHER: readonly (readonly EventKind[])[] = [
  ['turn.done', 'turn.failed', 'turn.aborted'],
  ['delegation.completed', 'delegation.aborted'],
];

type Draft = Pick<EventDraft, 'id' | 'kind' | 'turn' | 'author'>;

/**
 * Whether the runtime itself may have written `there` under the id of this draft, perhaps with other text. Imported events may
 * have any id, and are never written by this runtime.
 */
export function isOurs(there: Event, { kind, turn, author }: Omit<Draft, 'id'>): boolean {
  if (isImported(there) || there.turn !== turn) return false;
  if (kind === 'message')
    return there.kind === kind && there.author.kind === author.kind && there.author.id === author.id;
  return there.kind === kind || EITHER.some((kinds) => kinds.includes(kind) && kinds.includes(there.kind));
}

/**
 * The id of an event of the runtime, written or yet to be written: its own, or its first spare id that no other event has.
 * Every process finds the same id, so repeated or concurrent work writes the event once. Throws `event_conflict`.
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
  const message = `${MOST_SPARES} spare ids of ${draft.id} are taken in ${log.conversation}`;
  throw new TroupeError('event_conflict', message, { id: draft.id, conversation: log.conversation });
}

/** The runtime's own event for this draft, under its id or a spare one. Null if it is not written yet. */
export async function readOwn(
  store: Pick<Store, 'readById'>,
  log: ConversationKey,
  draft: Draft,
): Promise<Event | null> {
  return (await ownPlace(store, log, draft)).there;
}
