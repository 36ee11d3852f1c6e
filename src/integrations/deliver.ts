import * as z from 'zod';
import { TroupeError } from '../errors.ts';
import type { Event } from '../events/index.ts';
import type { KeyValue } from '../key-value.ts';
import type { Follower } from './follower.ts';
import type { IntegrationTroupe } from './integration.ts';

export interface Delivery {
  troupe: Pick<IntegrationTroupe, 'events'>;
  cursors: Cursors;
  follower: Follower;
  /** Asked before each event. */
  goesOn: () => boolean;
  onDelivered: () => void;
  signal: AbortSignal;
}

const PAGE = 200;
/** Times of neighbours in a log may lie in the wrong order, if they are of several machines. */
const DISORDER_MS = 60_000;

/**
 * Hands over what is new of one conversation. True when its end was reached, or there is no such conversation; false
 * if it stopped before. Throws what `deliver` and the store throw, with all before that noted.
 */
export async function deliver(conversation: string, parts: Delivery): Promise<boolean> {
  const { cursors, follower, goesOn, signal } = parts;
  try {
    let cursor = (await cursors.of(conversation)) ?? (await findStart(conversation, parts));
    for (;;) {
      const { events, isLast } = await readAfter(conversation, cursor, parts);
      for (const event of events) {
        if (!goesOn()) return false;
        if (event.at >= follower.since && (follower.cares?.(event) ?? true)) {
          await follower.deliver(event, signal);
          parts.onDelivered();
        }
        cursor = event;
        if (!(await cursors.move(conversation, event))) return false;
      }
      if (isLast) return await cursors.save(conversation);
    }
  } catch (error) {
    if (!(error instanceof TroupeError && error.code === 'conversation_unknown')) throw error;
    cursors.forget(conversation);
    return true;
  } finally {
    await cursors.save(conversation);
  }
}

/**
 * What comes after the cursor. The event at the cursor is read too: if it is another, the conversation was deleted and
 * begun anew, and all of it is new.
 */
async function readAfter(
  conversation: string,
  { seq, id, at }: Cursor,
  { troupe }: Pick<Delivery, 'troupe'>,
): Promise<{ events: Event[]; isLast: boolean }> {
  const isSure = id === undefined;
  const after = isSure ? seq : seq - 1;
  const { events, head } = await troupe.events(conversation, { after, limit: PAGE });
  // Large events make a short page.
  const isLast = (events.at(-1)?.seq ?? head) >= head;
  if (isSure) return { events, isLast };
  const [last, ...rest] = events;
  const isSame = last?.id === id && last?.at === at;
  if (isSame && (rest.length > 0 || isLast)) return { events: rest, isLast };
  if (isSame) return readAfter(conversation, { seq }, { troupe });
  return readAfter(conversation, { seq: 0 }, { troupe });
}

/** Back from the end in growing steps, to where all is older than `since`: a long log is not read for its last lines. */
async function findStart(conversation: string, { troupe, follower }: Delivery): Promise<Cursor> {
  const { head } = await troupe.events(conversation, { limit: 1 });
  for (let back = PAGE; back < head; back *= 2) {
    const { events } = await troupe.events(conversation, { after: head - back, limit: PAGE });
    if (events.every(({ at }) => at < follower.since - DISORDER_MS)) return { seq: head - back };
  }
  return { seq: 0 };
}

/** The last event that was handed over; with its id and time, as a conversation may be deleted and begun anew. */
const Cursor = z.object({ seq: z.int().nonnegative(), id: z.string().optional(), at: z.number().optional() });
type Cursor = z.infer<typeof Cursor>;

interface Place {
  /** Null: nothing was ever handed over. */
  cursor: Cursor | null;
  /** What the note says; null: there is none. */
  stored: string | null;
  /** Events since it was written. */
  unsaved: number;
  savedAt: number;
}

/** While many come, the note is written once for so many, or so long. */
const SAVE_EVENTS = 50;
const SAVE_MS = 200;
/** Of the conversations begun last; others are read from their notes again. */
const MAX_KEPT = 10_000;

/**
 * How far a follower is in each conversation. Owns the notes `sent/<follower>/<conversation>`.
 *  C1  A note never names an event that was not handed over.
 *  C2  Whoever finds that another process has written a note forgets what it knew, and reads it.
 */
export class Cursors {
  readonly #places = new Map<string, Place>();
  readonly #keyValue: KeyValue;
  readonly #prefix: string;
  readonly #now: () => number;

  constructor(keyValue: KeyValue, follower: string, now: () => number) {
    this.#keyValue = keyValue;
    this.#prefix = `sent/${follower}/`;
    this.#now = now;
  }

  /** Null where nothing was ever handed over of it. */
  async of(conversation: string): Promise<Cursor | null> {
    return (await this.#place(conversation)).cursor;
  }

  /** Whether it is known that nothing is left of a conversation with this end. */
  isAt(conversation: string, end: { head: number; at: number }): boolean {
    const cursor = this.#places.get(conversation)?.cursor;
    return cursor?.seq === end.head && cursor.at === end.at;
  }

  /** Written when it is due, or with `save`. False if another process has written it. */
  async move(conversation: string, { seq, id, at }: Event): Promise<boolean> {
    const place = await this.#place(conversation);
    place.cursor = { seq, id, at };
    place.unsaved += 1;
    const isDue = place.unsaved >= SAVE_EVENTS || this.#now() - place.savedAt >= SAVE_MS;
    return !isDue || (await this.save(conversation));
  }

  /** False if another process has written it. */
  async save(conversation: string): Promise<boolean> {
    const place = this.#places.get(conversation);
    if (!place || place.unsaved === 0) return true;
    const text = JSON.stringify(place.cursor);
    const after = await this.#keyValue.compareAndSet(this.#prefix + conversation, place.stored, text);
    if (after !== text) {
      this.#places.delete(conversation);
      return false;
    }
    Object.assign(place, { stored: text, unsaved: 0, savedAt: this.#now() });
    return true;
  }

  forget(conversation: string): void {
    this.#places.delete(conversation);
  }

  forgetAll(): void {
    this.#places.clear();
  }

  async #place(conversation: string): Promise<Place> {
    const known = this.#places.get(conversation);
    if (known) return known;
    const stored = await this.#keyValue.get(this.#prefix + conversation);
    const place = {
      cursor: stored === null ? null : parseCursor(stored),
      stored,
      unsaved: 0,
      savedAt: this.#now(),
    };
    this.#keep(conversation, place);
    return place;
  }

  #keep(conversation: string, place: Place): void {
    this.#places.set(conversation, place);
    for (const [oldest, { unsaved }] of this.#places) {
      if (this.#places.size <= MAX_KEPT) return;
      if (unsaved === 0) this.#places.delete(oldest);
    }
  }
}

/** Null for what is none: that conversation is begun anew, and something may come twice. */
function parseCursor(text: string): Cursor | null {
  try {
    return Cursor.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    // Not JSON: no cursor of ours.
    return null;
  }
}
