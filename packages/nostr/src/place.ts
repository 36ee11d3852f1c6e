import * as z from 'zod';
import type { KeyValue } from './troupe.ts';
import type { SignedEvent } from './nostr-event.ts';

/**
 * The data of an event that a reply to it needs. The receiver saves it before it sends the message to the log: a message
 * without a place did not come from Nostr, and no reply to it is published.
 */
export const Place = z.strictObject({
  id: z.string(),
  pubkey: z.string(),
  kind: z.int().nonnegative(),
  /** The relay it first arrived from, as a hint; '' if there is none yet. */
  relay: z.string(),
  /** Only tags that place it in a thread or name people. */
  tags: z.array(z.array(z.string())),
  /** The root of its conversation, if its tags do not say it. */
  root: z.string().optional(),
  /** Its message was in the log. If the message is missing now, it was deleted and is not stored again. */
  stored: z.literal(true).optional(),
});
export type Place = z.infer<typeof Place>;

/** Tags of NIP-10 and NIP-22, and the `d` of addressable events. */
const PLACE_TAGS: ReadonlySet<string> = new Set(['e', 'a', 'k', 'p', 'E', 'A', 'I', 'K', 'P', 'd']);
/** Limits of one event, so that its entry stays small. */
const MAX_TAGS = 300;
const MAX_TAG_LENGTH = 1_000;

export function placeOf(event: Pick<SignedEvent, 'id' | 'pubkey' | 'kind' | 'tags'>, relay: string): Place {
  const tags = event.tags.filter(
    (tag) => PLACE_TAGS.has(tag[0] ?? '') && tag.every((part) => part.length <= MAX_TAG_LENGTH),
  );
  return {
    id: event.id,
    pubkey: event.pubkey,
    kind: event.kind,
    relay,
    tags: tags.slice(0, MAX_TAGS).map((tag) => tag.slice(0, 5)),
  };
}

/** The first saved version stays. Returns it. */
export async function savePlace(keyValue: Pick<KeyValue, 'compareAndSet'>, place: Place): Promise<Place> {
  return Place.parse(JSON.parse(await keyValue.compareAndSet(keyOf(place.id), null, JSON.stringify(place))));
}

/** Called only when the message is in the log. `place`: as `savePlace` returned it. */
export async function markStored(keyValue: Pick<KeyValue, 'compareAndSet'>, place: Place): Promise<void> {
  await keyValue.compareAndSet(
    keyOf(place.id),
    JSON.stringify(place),
    JSON.stringify({ ...place, stored: true }),
  );
}

export async function readPlace(keyValue: Pick<KeyValue, 'get'>, id: string): Promise<Place | null> {
  const text = await keyValue.get(keyOf(id));
  return text === null ? null : Place.parse(JSON.parse(text));
}

function keyOf(id: string): string {
  return `nostr/in/${id}`;
}

/**
 * The root in the id of a conversation from Nostr: the id of the thread's first event, or a hash of the thread's subject.
 * Null for any other conversation, including task threads and forks: nothing in them is published.
 */
export function rootOf(conversation: string, prefix: string): string | null {
  if (!conversation.startsWith(prefix)) return null;
  const root = conversation.slice(prefix.length);
  return /^(?:[0-9a-f]{32}|[0-9a-f]{64})$/.test(root) ? root : null;
}
