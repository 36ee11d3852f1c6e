import { getEventHash } from 'nostr-tools/pure';
import * as z from 'zod';
import type { ConversationId, EventId, KeyValue } from './troupe.ts';
import type { SignedEvent } from './nostr-event.ts';

interface LogPlace {
  conversation: ConversationId;
  event: EventId;
}

/** The time is part of the key, because event ids repeat in a conversation that was deleted and created again. */
export interface Said extends LogPlace {
  /** Ms. */
  at: number;
}

/** The fields of a signed event that the log does not hold. */
const Signed = z.strictObject({
  id: z.string(),
  pubkey: z.string(),
  created_at: z.int(),
  kind: z.int(),
  tags: z.array(z.array(z.string())),
  sig: z.string(),
});
type Signed = z.infer<typeof Signed>;
const StoredLogPlace = z.strictObject({ conversation: z.string(), event: z.string() });

/**
 * Maps events of the log to the Nostr events as which they were published.
 *  P1  An event is saved before it is published, in both directions, so that an echo or an answer is recognised.
 *  P2  The first version stays: every relay gets the same event in every attempt.
 *  P3  A stored signature is used only for its own content. Changed content is signed anew and replaces it.
 */
export interface Published {
  /** Null for an event that is not ours. */
  publishedAs(nostrId: string): Promise<LogPlace | null>;
  /** The event as first signed; null if this content was never signed. */
  get(said: Said, content: string): Promise<SignedEvent | null>;
  /** Returns the stored event: this one, or the one saved before. */
  save(said: Said, signed: SignedEvent): Promise<SignedEvent>;
  /** The place of one of our events in its thread. `relay`: relay hint. */
  place(said: Said, relay: string): Promise<Place | null>;
}

export function createPublished(keyValue: Pick<KeyValue, 'get' | 'compareAndSet'>): Published {
  async function read(said: Said): Promise<Signed | null> {
    const text = await keyValue.get(saidKey(said));
    return text === null ? null : Signed.parse(JSON.parse(text));
  }

  async function point(id: string, { conversation, event }: LogPlace): Promise<void> {
    await keyValue.compareAndSet(outKey(id), null, JSON.stringify({ conversation, event }));
  }

  return {
    async publishedAs(nostrId) {
      const text = await keyValue.get(outKey(nostrId));
      return text === null ? null : (StoredLogPlace.parse(JSON.parse(text)) as LogPlace);
    },
    async get(said, content) {
      const signed = await read(said);
      if (!signed || !isOf(signed, content)) return null;
      // A crash may have come between the two writes.
      await point(signed.id, said);
      return { ...signed, content };
    },
    async save(said, { content, ...signed }) {
      const before = await keyValue.get(saidKey(said));
      const isStale = before !== null && !isOf(Signed.parse(JSON.parse(before)), content);
      const text = await keyValue.compareAndSet(
        saidKey(said),
        isStale ? before : null,
        JSON.stringify(signed),
      );
      const kept = Signed.parse(JSON.parse(text));
      await point(kept.id, said);
      return { ...kept, content };
    },
    async place(said, relay) {
      const signed = await read(said);
      return signed && placeOf(signed, relay);
    },
  };
}

function outKey(id: string): string {
  return `nostr/out/${id}`;
}

function saidKey({ conversation, event, at }: Said): string {
  return `nostr/said/${conversation}/${event}/${at}`;
}

function isOf(signed: Signed, content: string): boolean {
  return getEventHash({ ...signed, content }) === signed.id;
}

/**
 * The data of an event that a reply to it needs. The receiver saves it before it sends the message to the log: a message
 * without a place did not come from Nostr, so no reply to it is published.
 */
export const Place = z.strictObject({
  id: z.string(),
  pubkey: z.string(),
  kind: z.int().nonnegative(),
  /** The relay it first arrived from, as a hint; '' if there is none yet. */
  relay: z.string(),
  /** Only tags that place it in a thread or name people. */
  tags: z.array(z.array(z.string())),
  /** The root of its conversation, if its tags do not name it. */
  root: z.string().optional(),
  /** Its message was in the log. If the message is missing now, it was deleted, and is not stored again. */
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

/** Keeps the first saved version, and returns it. */
export async function savePlace(keyValue: Pick<KeyValue, 'compareAndSet'>, place: Place): Promise<Place> {
  return Place.parse(JSON.parse(await keyValue.compareAndSet(keyOf(place.id), null, JSON.stringify(place))));
}

/** Called only after the message is in the log. `place`: as `savePlace` returned it. */
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
