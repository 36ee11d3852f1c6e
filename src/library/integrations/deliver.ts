import * as z from 'zod';
import { TroupeError } from '../../base/errors.ts';
import type { Event } from '../../events/index.ts';
import type { KeyValue } from '../../base/key-value.ts';
import type { IntegrationTroupe } from './integration.ts';

interface Delivery {
  troupe: Pick<IntegrationTroupe, 'events'>;
  cursors: Cursors;
  follower: Follower;
  /** Called before each event. */
  mayContinue: () => boolean;
  onDelivered: () => void;
  signal: AbortSignal;
}

const PAGE = 200;
/** Clocks of machines differ, so the times of neighbouring events may be out of order by this much, ms. */
const DISORDER_MS = 60_000;

/**
 * Delivers the new events of one conversation. Returns true at its end or if it does not exist, false if it stopped earlier.
 * Throws the errors of the follower and the store, with the cursor saved at the last delivered event.
 */
export async function deliver(conversation: string, parts: Delivery): Promise<boolean> {
  const { cursors, follower, mayContinue, signal } = parts;
  try {
    let cursor = (await cursors.of(conversation)) ?? (await findStart(conversation, parts));
    for (;;) {
      const { events, isLast } = await readAfter(conversation, cursor, parts);
      for (const event of events) {
        if (!mayContinue()) return false;
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
  // A short page may be one of large events, not the last.
  const isLast = (events.at(-1)?.seq ?? head) >= head;
  if (isSure) return { events, isLast };
  const [last, ...rest] = events;
  const isSame = last?.id === id && last?.at === at;
  if (isSame && (rest.length > 0 || isLast)) return { events: rest, isLast };
  if (isSame) return readAfter(conversation, { seq }, { troupe });
  return readAfter(conversation, { seq: 0 }, { troupe });
}

/** Searches backwards in growing steps for the first event since `since`: a long log is not read from its start. */
async function findStart(conversation: string, { troupe, follower }: Delivery): Promise<Cursor> {
  const { head } = await troupe.events(conversation, { limit: 1 });
  for (let back = PAGE; back < head; back *= 2) {
    const { events } = await troupe.events(conversation, { after: head - back, limit: PAGE });
    if (events.every(({ at }) => at < follower.since - DISORDER_MS)) return { seq: head - back };
  }
  return { seq: 0 };
}

/** The last delivered event. Id and time distinguish it from an event of a later conversation with the same id. */
const Cursor = z.object({ seq: z.int().nonnegative(), id: z.string().optional(), at: z.number().optional() });
type Cursor = z.infer<typeof Cursor>;

interface Position {
  /** Null if nothing was delivered. */
  cursor: Cursor | null;
  /** Text of the stored entry. Null if there is none. */
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
  readonly #positions = new Map<string, Position>();
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
    return (await this.#position(conversation)).cursor;
  }

  /** True if the cursor in memory is at this end of the conversation. */
  isAt(conversation: string, end: { head: number; at: number }): boolean {
    const cursor = this.#positions.get(conversation)?.cursor;
    return cursor?.seq === end.head && cursor.at === end.at;
  }

  /** The entry is written when due. Returns false if another process has changed it. */
  async move(conversation: string, { seq, id, at }: Event): Promise<boolean> {
    const position = await this.#position(conversation);
    position.cursor = { seq, id, at };
    position.unsaved += 1;
    const isDue = position.unsaved >= SAVE_EVENTS || this.#now() - position.savedAt >= SAVE_MS;
    return !isDue || (await this.save(conversation));
  }

  /** Returns false if another process has changed the entry. */
  async save(conversation: string): Promise<boolean> {
    const position = this.#positions.get(conversation);
    if (!position || position.unsaved === 0) return true;
    const text = JSON.stringify(position.cursor);
    const after = await this.#keyValue.compareAndSet(this.#prefix + conversation, position.stored, text);
    if (after !== text) {
      this.#positions.delete(conversation);
      return false;
    }
    Object.assign(position, { stored: text, unsaved: 0, savedAt: this.#now() });
    return true;
  }

  forget(conversation: string): void {
    this.#positions.delete(conversation);
  }

  forgetAll(): void {
    this.#positions.clear();
  }

  async #position(conversation: string): Promise<Position> {
    const known = this.#positions.get(conversation);
    if (known) return known;
    const stored = await this.#keyValue.get(this.#prefix + conversation);
    const position = {
      cursor: stored === null ? null : parseCursor(stored),
      stored,
      unsaved: 0,
      savedAt: this.#now(),
    };
    this.#keep(conversation, position);
    return position;
  }

  #keep(conversation: string, position: Position): void {
    this.#positions.set(conversation, position);
    for (const [oldest, { unsaved }] of this.#positions) {
      if (this.#positions.size <= MAX_KEPT) return;
      if (unsaved === 0) this.#positions.delete(oldest);
    }
  }
}

/** Null for an invalid text: the conversation is then delivered from its start, and events may be delivered twice. */
function parseCursor(text: string): Cursor | null {
  try {
    return Cursor.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    // Invalid JSON counts as no cursor.
    return null;
  }
}

/** A receiver of events of the log, such as a webhook or a relay. */
export interface Follower {
  /** Unique within its tenant, and stable: `webhook/<id>`, `nostr/<hash of the relay's URL>`. Slug characters and `/`. */
  name: string;
  /** Whether it wants events of a conversation. */
  wants(conversation: string): boolean;
  /** Whether it wants an event. Unwanted ones are skipped at almost no cost. Default: true. */
  cares?(event: Event): boolean;
  /** Events before this time, ms, are not delivered. */
  since: number;
  /**
   * Resolves when the event is done: sent, of no interest, or refused for good. If it throws, the follower pauses and
   * retries; a `RetryAfter` sets the pause. Called for several conversations at once, one event of each at a time.
   * `signal` aborts when the process cannot wait any longer.
   */
  deliver(event: Event, signal: AbortSignal): Promise<void>;
  /** Called after each counted failure of `deliver`. */
  onFailed?(status: FollowerStatus): void;
}

/** State of a follower. */
export interface FollowerStatus {
  /** Conversations with events to deliver, as far as this process knows. */
  behind: number;
  /** Failures in a row. */
  failures: number;
  /** The last failure. Null: none. */
  lastError: string | null;
  /** Time of the next attempt, ms. Null if nothing has failed. */
  retryAt: number | null;
}

/** Thrown by `deliver`: the next attempt comes after `ms`. */
export class RetryAfter extends Error {
  override readonly name = 'RetryAfter';
  /** The pause, ms. */
  readonly ms: number;

  constructor(ms: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.ms = ms;
  }
}

const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 300_000;
/** The longest pause that a receiver can request. */
export const MAX_ASKED_MS = 3_600_000;

/** Pause after this many failures in a row, ms. Half of it is random: followers that failed together must not retry together. */
export function pauseAfter(error: unknown, failures: number, random: () => number): number {
  if (error instanceof RetryAfter) return Math.min(MAX_ASKED_MS, Math.max(FIRST_PAUSE_MS, error.ms));
  const half = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1)) / 2;
  return Math.round(half + random() * half);
}
