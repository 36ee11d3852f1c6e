import type { Clock } from '../clock.ts';
import { TroupeError } from '../errors.ts';
import { charsOf, type ConversationId, type Event } from '../events/index.ts';
import type { Troupe, Watcher } from '../troupe.ts';

type Note = Parameters<Watcher>[0];
/** `gap`: a stream over all conversations dropped events, because the reader is too slow. */
export type Frame = Note | { type: 'heartbeat' } | { type: 'gap' };

interface FollowOptions {
  troupe: Troupe;
  clock: Clock;
  signal: AbortSignal;
  /** How often a reader without notifications reads the log, ms. Default 3 s. */
  lookMs?: number;
  /** Silence after which a heartbeat comes, ms. Default 15 s. */
  heartbeatMs?: number;
}

const HEARTBEAT_MS = 15_000;
/** A reader without notifications reads the log this often: notifications may be lost. */
const LOOK_MS = 3_000;
const PAGE = 500;
/**
 * Limit of a page of stored events. Each slow reader keeps one page in memory, while new events are shared by all
 * watchers.
 */
const FOLLOW_BYTES = 1024 * 1024;

/**
 * Follows one conversation from `after` on, without end: first the stored events, then new ones.
 * 1. Watching starts before the first read, so that no event falls between the two.
 * 2. `sent` rises by one with each event. A live event with a seq at or below it was replayed already; one further
 *    ahead means that some were missed, and the log is read again. So no event is lost or doubled.
 * 3. Without notifications for `lookMs` the log is read: other processes write it too, and notifications may be lost.
 * 4. A conversation that does not exist yet is an empty one.
 */
export async function* followConversation(
  conversation: ConversationId,
  after: number,
  options: FollowOptions,
): AsyncGenerator<Frame, void> {
  const { troupe, clock, signal } = options;
  const { lookMs, heartbeatMs } = { lookMs: LOOK_MS, heartbeatMs: HEARTBEAT_MS, ...options };
  const inbox = new Inbox(troupe, conversation);
  try {
    let sent = after;
    let isBehind = true;
    let quietMs = 0;
    while (!signal.aborted) {
      for await (const event of isBehind ? storedEvents(troupe, conversation, sent, signal) : []) {
        yield { type: 'event', event };
        sent = event.seq;
      }
      isBehind = false;
      const note = inbox.take();
      if (note && note.type !== 'event') yield note;
      else if (note?.event.seq === sent + 1) {
        yield note;
        sent += 1;
      } else if (note) isBehind = note.event.seq > sent;
      else if (inbox.takeOverflow()) isBehind = true;
      else if (await inbox.wait(clock, lookMs, signal)) quietMs = 0;
      else {
        isBehind = true;
        quietMs += lookMs;
        if (quietMs % heartbeatMs === 0) yield { type: 'heartbeat' };
      }
    }
  } finally {
    inbox.close();
  }
}

/** Follows all conversations from now on. */
export async function* followAll({ troupe, clock, signal }: FollowOptions): AsyncGenerator<Frame, void> {
  const inbox = new Inbox(troupe, null);
  try {
    while (!signal.aborted) {
      const note = inbox.take();
      if (note) yield note;
      else if (inbox.takeOverflow()) yield { type: 'gap' };
      else if (!(await inbox.wait(clock, HEARTBEAT_MS, signal))) yield { type: 'heartbeat' };
    }
  } finally {
    inbox.close();
  }
}

/** The events after a seq, page by page, up to the head. Stops when the reader has left. */
async function* storedEvents(
  troupe: Troupe,
  conversation: ConversationId,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<Event, void> {
  for (let last = after; ;) {
    const { events, head } = await readPage(troupe, conversation, last);
    const isEmpty = events.length === 0;
    // Releases each event once it is sent.
    for (let event = events.shift(); event; event = events.shift()) {
      yield event;
      last = event.seq;
    }
    if (isEmpty || last >= head || signal.aborted) return;
  }
}

async function readPage(
  troupe: Troupe,
  conversation: ConversationId,
  after: number,
): Promise<{ events: Event[]; head: number }> {
  try {
    return await troupe.events(conversation, { after, limit: PAGE, maxBytes: FOLLOW_BYTES });
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'conversation_unknown') return { events: [], head: 0 };
    throw error;
  }
}

/** Limits of unread notes, as a number and in characters. */
const MAX_NOTES = 1_000;
const MAX_LENGTH = 4 * 1_024 * 1_024;
const SMALL_NOTE = 300;
/** Abort reason that wakes a reader; without one, every note would create an error with a stack. */
const WOKEN = Symbol('woken');

/**
 * A bounded queue of notes. Owns the subscription and the unread notes. It drops notes that do not fit, and
 * `takeOverflow` reports this: the log has the events, and delivery of deltas is not guaranteed.
 */
class Inbox {
  #notes: Note[] = [];
  #length = 0;
  #overflowed = false;
  #wake: () => void = () => {};
  readonly #unwatch: () => void;

  constructor(troupe: Troupe, conversation: string | null) {
    this.#unwatch = troupe.watch((note) => this.#add(note), conversation === null ? {} : { conversation });
  }

  take(): Note | undefined {
    const note = this.#notes.shift();
    if (note) this.#length -= lengthOf(note);
    return note;
  }

  /** Returns whether notes were dropped since the last call. */
  takeOverflow(): boolean {
    const overflowed = this.#overflowed;
    this.#overflowed = false;
    return overflowed;
  }

  /** Waits for a note, the abort of `signal`, or the end of the time. Returns whether there is a note. */
  async wait(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
    if (this.#notes.length > 0) return true;
    const awake = new AbortController();
    this.#wake = () => awake.abort(WOKEN);
    signal.addEventListener('abort', this.#wake, { once: true });
    if (!signal.aborted) await clock.sleep(ms, awake.signal);
    signal.removeEventListener('abort', this.#wake);
    return this.#notes.length > 0;
  }

  close(): void {
    this.#unwatch();
  }

  #add(note: Note): void {
    const length = lengthOf(note);
    if (this.#notes.length < MAX_NOTES && this.#length + length <= MAX_LENGTH) {
      this.#notes.push(note);
      this.#length += length;
    } else this.#overflowed = true;
    this.#wake();
  }
}

/** Approximate number of characters of a note in a stream. */
function lengthOf(note: Note): number {
  if (note.type === 'event') return eventJson(note.event).length;
  return SMALL_NOTE + (note.type === 'state' ? 0 : charsOf(note));
}

const texts = new WeakMap<Event, string>();

/** An event as JSON, cached for all followers: events never change. */
export function eventJson(event: Event): string {
  const known = texts.get(event);
  if (known !== undefined) return known;
  const text = JSON.stringify(event);
  texts.set(event, text);
  return text;
}
