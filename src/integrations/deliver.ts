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
/** Clocks of several machines differ: times of neighbouring events may be out of order by this much. */
const DISORDER_MS = 60_000;

/**
 * Delivers the new events of one conversation. Returns true at its end, or if the conversation does not exist; false if it
 * stopped earlier. Throws what the follower and the store throw; the cursor is then saved up to the last delivered event.
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
 * The events after the cursor. The event at the cursor is read too: if it has changed, the conversation was deleted and
 * created again, and all its events are new.
 */
async function readAfter(
  conversation: string,
  { seq, id, at }: Cursor,
  { troupe }: Pick<Delivery, 'troupe'>,
): Promise<{ events: Event[]; isLast: boolean }> {
  const isSure = id === undefined;
  const after = isSure ? seq : seq - 1;
  const { events, head } = await troupe.events(conversation, { after, limit: PAGE });
  // A page of large events is short without being the last.
  const isLast = (events.at(-1)?.seq ?? head) >= head;
  if (isSure) return { events, isLast };
  const [last, ...rest] = events;
  const isSame = last?.id === id && last?.at === at;
  if (isSame && (rest.length > 0 || isLast)) return { events: rest, isLast };
  if (isSame) return readAfter(conversation, { seq }, { troupe });
  return readAfter(conversation, { seq: 0 }, { troupe });
}

/** Searches backwards in growing steps for the first event since `since`, so that a long log is not read from its start. */
async function findStart(conversation: string, { troupe, follower }: Delivery): Promise<Cursor> {
  const { head } = await troupe.events(conversation, { limit: 1 });
  for (let back = PAGE; back < head; back *= 2) {
    const { events } = await troupe.events(conversation, { after: head - back, limit: PAGE });
    if (events.every(({ at }) => at < follower.since - DISORDER_MS)) return { seq: head - back };
  }
  return { seq: 0 };
}

/** The last delivered event. Id and time tell it from an event of a later conversation with the same name. */
const Cursor = z.object({ seq: z.int().nonnegative(), id: z.string().optional(), at: z.number().optional() });
type Cursor = z.infer<typeof Cursor>;

interface Place {
  /** Null: nothing was delivered yet. */
  cursor: Cursor | null;
  /** Text of the stored entry. Null: there is none. */
  stored: string | null;
  /** Events delivered since the entry was written. */
  unsaved: number;
  savedAt: number;
}

/** The entry is written after this many events or this long, whichever is first. */
const SAVE_EVENTS = 50;
const SAVE_MS = 200;
/** Cursors kept in memory. Older ones are read from the store again. */
const MAX_KEPT = 10_000;

/**
 * The position of a follower in each conversation. Owns the entries `sent/<follower>/<conversation>`.
 *  C1  An entry never names an event that was not delivered.
 *  C2  A process that finds an entry changed by another process drops its own cursor and reads the entry.
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

  /** Null if none of its events was delivered. */
  async of(conversation: string): Promise<Cursor | null> {
    return (await this.#place(conversation)).cursor;
  }

  /** True if the cursor is known to be at this end of the conversation. */
  isAt(conversation: string, end: { head: number; at: number }): boolean {
    const cursor = this.#places.get(conversation)?.cursor;
    return cursor?.seq === end.head && cursor.at === end.at;
  }

  /** The entry is written when due. Returns false if another process has changed it. */
  async move(conversation: string, { seq, id, at }: Event): Promise<boolean> {
    const place = await this.#place(conversation);
    place.cursor = { seq, id, at };
    place.unsaved += 1;
    const isDue = place.unsaved >= SAVE_EVENTS || this.#now() - place.savedAt >= SAVE_MS;
    return !isDue || (await this.save(conversation));
  }

  /** Returns false if another process has changed the entry. */
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

/** Null for an invalid text: the conversation is then delivered from the start, and events may be delivered twice. */
function parseCursor(text: string): Cursor | null {
  try {
    return Cursor.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    // Invalid JSON counts as no cursor.
    return null;
  }
}
