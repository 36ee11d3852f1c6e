import * as z from 'zod';
import type { Event } from '../events/index.ts';
import type { KeyValue } from '../key-value.ts';

/** The last event that was handed over; with its id and time, as a conversation may be deleted and begun anew. */
const Cursor = z.object({ seq: z.int().nonnegative(), id: z.string().optional(), at: z.number().optional() });
export type Cursor = z.infer<typeof Cursor>;

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
  readonly #notes: KeyValue;
  readonly #prefix: string;
  readonly #now: () => number;

  constructor(notes: KeyValue, follower: string, now: () => number) {
    this.#notes = notes;
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
    const after = await this.#notes.compareAndSet(this.#prefix + conversation, place.stored, text);
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
    const stored = await this.#notes.get(this.#prefix + conversation);
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
