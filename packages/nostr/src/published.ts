import { getEventHash } from 'nostr-tools/pure';
import * as z from 'zod';
import type { ConversationId, EventId, KeyValue } from './troupe.ts';
import type { SignedEvent } from './nostr-event.ts';
import { type Place, placeOf } from './place.ts';

/** An event of the log. */
export interface LogPlace {
  conversation: ConversationId;
  event: EventId;
}

/** The time is part of the key: in a conversation that was deleted and created again, event ids repeat. */
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
 * Maps events of the log to the Nostr events they were published as.
 *  P1  An event is saved before it is published, in both directions, so that an echo or an answer is recognised.
 *  P2  The first version stays: every relay gets the same event in every attempt.
 *  P3  A stored signature is used only for its own content. Other content is signed anew and replaces it.
 */
export interface Published {
  /** Null for an event that is not ours. */
  publishedAs(nostrId: string): Promise<LogPlace | null>;
  /** The event as first signed; null if this content was never signed. */
  get(said: Said, content: string): Promise<SignedEvent | null>;
  /** Returns the stored event: this one, or the one saved before. */
  save(said: Said, signed: SignedEvent): Promise<SignedEvent>;
  /** The place of one of our events in its thread. `relay`: the hint. */
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
