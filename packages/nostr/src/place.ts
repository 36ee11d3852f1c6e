import * as z from 'zod';
import type { KeyValue } from './troupe.ts';
import type { SignedEvent } from './nostr-event.ts';

/**
 * What a reply must know of the event that it answers. Whoever lets an event in notes its place before the message is
 * sent on, see `notePlace`: an event without one did not come from Nostr, and no reply to it is published.
 */
export const Place = z.strictObject({
  id: z.string(),
  pubkey: z.string(),
  kind: z.int().nonnegative(),
  /** Where it was seen first, as a hint for others; '' if nowhere yet. */
  relay: z.string(),
  /** Its tags that place it in a thread and name people; nothing else of it. */
  tags: z.array(z.array(z.string())),
  /** Its message was in the log. Where that is gone it was deleted, and is not brought back. */
  stored: z.literal(true).optional(),
});
export type Place = z.infer<typeof Place>;

/** NIP-10, NIP-22. Of addressable events the `d`. */
const PLACING: ReadonlySet<string> = new Set(['e', 'a', 'k', 'p', 'E', 'A', 'I', 'K', 'P', 'd']);
/** Of one event, so that a note stays small. */
const MAX_TAGS = 300;
const MAX_TAG_LENGTH = 1_000;

export function placeOf(event: Pick<SignedEvent, 'id' | 'pubkey' | 'kind' | 'tags'>, relay: string): Place {
  const tags = event.tags.filter(
    (tag) => PLACING.has(tag[0] ?? '') && tag.every((part) => part.length <= MAX_TAG_LENGTH),
  );
  return {
    id: event.id,
    pubkey: event.pubkey,
    kind: event.kind,
    relay,
    tags: tags.slice(0, MAX_TAGS).map((tag) => tag.slice(0, 5)),
  };
}

/** Once written it stays: of two relays the first is the hint. Returns what counts. */
export async function notePlace(keyValue: Pick<KeyValue, 'compareAndSet'>, place: Place): Promise<Place> {
  return Place.parse(JSON.parse(await keyValue.compareAndSet(keyOf(place.id), null, JSON.stringify(place))));
}

/** After the message is in the log, never before. `place`: as `notePlace` returned it. */
export async function noteStored(keyValue: Pick<KeyValue, 'compareAndSet'>, place: Place): Promise<void> {
  await keyValue.compareAndSet(
    keyOf(place.id),
    JSON.stringify(place),
    JSON.stringify({ ...place, stored: true }),
  );
}

export async function recallPlace(keyValue: Pick<KeyValue, 'get'>, id: string): Promise<Place | null> {
  const text = await keyValue.get(keyOf(id));
  return text === null ? null : Place.parse(JSON.parse(text));
}

function keyOf(id: string): string {
  return `nostr/in/${id}`;
}

/**
 * What a conversation from Nostr is named after: the id of the first event of its thread, or a hash of what that is about.
 * Null for any other conversation, threads of tasks and forks among them: what is said there stays there.
 */
export function rootOf(conversation: string, prefix: string): string | null {
  if (!conversation.startsWith(prefix)) return null;
  const root = conversation.slice(prefix.length);
  return /^(?:[0-9a-f]{32}|[0-9a-f]{64})$/.test(root) ? root : null;
}
