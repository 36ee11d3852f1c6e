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

/** With its time: where a conversation is deleted and begun anew, the ids of what agents say begin anew too. */
export interface Said extends LogPlace {
  /** Ms. */
  at: number;
}

/** What of a signed event does not stand in the log. */
const Signed = z.strictObject({
  id: z.string(),
  pubkey: z.string(),
  created_at: z.int(),
  kind: z.int(),
  tags: z.array(z.array(z.string())),
  sig: z.string(),
});
type Signed = z.infer<typeof Signed>;
const LogPlaceNote = z.strictObject({ conversation: z.string(), event: z.string() });

/**
 * Which of our words went out as which Nostr events.
 *  P1  An event is noted before it is published, both ways; so what comes back, or is answered, is known for ours.
 *  P2  What was noted first stays: every relay is given the very same event, however often it is tried.
 *  P3  What is recalled was signed over these very words: a note of other ones gives way.
 */
export interface Published {
  /** Null for an event that is not ours. */
  publishedAs(nostrId: string): Promise<LogPlace | null>;
  /** The event as it was signed first; null if these words never were. */
  get(said: Said, content: string): Promise<SignedEvent | null>;
  /** Returns what counts: the given event, or one that was noted before. */
  note(said: Said, signed: SignedEvent): Promise<SignedEvent>;
  /** Where one of our events stands in its thread. `relay`: as a hint. */
  place(said: Said, relay: string): Promise<Place | null>;
}

export function createPublished(keyValue: Pick<KeyValue, 'get' | 'compareAndSet'>): Published {
  async function read(said: Said): Promise<Signed | null> {
    const text = await keyValue.get(saidKey(said));
    if (text !== null) return Signed.parse(JSON.parse(text));
    const untimed = await keyValue.get(untimedKey(said));
    const signed = untimed === null ? null : Signed.parse(JSON.parse(untimed));
    return signed?.created_at === Math.floor(said.at / 1_000) ? signed : null;
  }

  async function point(id: string, { conversation, event }: LogPlace): Promise<void> {
    await keyValue.compareAndSet(outKey(id), null, JSON.stringify({ conversation, event }));
  }

  return {
    async publishedAs(nostrId) {
      const text = await keyValue.get(outKey(nostrId));
      return text === null ? null : (LogPlaceNote.parse(JSON.parse(text)) as LogPlace);
    },
    async get(said, content) {
      const signed = await read(said);
      if (!signed || !isOf(signed, content)) return null;
      // A crash may have come between the two notes.
      await point(signed.id, said);
      return { ...signed, content };
    },
    async note(said, { content, ...signed }) {
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

/** As it was written before times were a part of it. */
function untimedKey({ conversation, event }: LogPlace): string {
  return `nostr/said/${conversation}/${event}`;
}

function isOf(signed: Signed, content: string): boolean {
  return getEventHash({ ...signed, content }) === signed.id;
}
