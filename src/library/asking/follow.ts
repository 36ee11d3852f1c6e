import type { Clock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import {
  charsOf,
  type ConversationId,
  type DelegationOpenedBody,
  type Event,
  type EventOf,
  isAbout,
  type LiveNote,
  type Note,
} from '../../events/index.ts';
import type { Troupe } from '../troupe.ts';

/**
 * `gap`: a stream over all conversations dropped events, because the reader is too slow. `reset`: the log is not the
 * one followed so far, because the conversation was deleted or a backup restored; all events of the new log follow.
 */
export type Frame =
  | Note
  | { type: 'heartbeat' }
  | { type: 'gap' }
  | { type: 'reset'; conversation: ConversationId };

export interface FollowOptions {
  /** The troupe, narrowed to the caller. */
  troupe: Troupe;
  /** Source of time. */
  clock: Clock;
  /** Ends the stream when it aborts. */
  signal: AbortSignal;
  /** How often a reader without notifications reads the log, ms. Default 3 s. */
  lookMs?: number;
  /** Silence after which a heartbeat comes, ms. Default 15 s. */
  heartbeatMs?: number;
  /** Also follows the threads of tasks that are opened after `after`. */
  threads?: boolean;
}

/** How far one conversation was followed. */
interface Followed {
  conversation: ConversationId;
  /** Seq of the last event. */
  sent: number;
  isBehind: boolean;
  /** The event at `sent`; null if the reader gave only its seq. */
  last: Event | null;
  /** An event came that does not fit the log so far, so the event at `sent` must be compared. */
  isDoubtful: boolean;
  /** The task whose opening is looked for: earlier events of the thread belong to other tasks. Null: events are yielded. */
  from: string | null;
}

const HEARTBEAT_MS = 15_000;
/** Interval at which a reader without notifications reads the log, because notifications may be lost. */
const LOOK_MS = 3_000;
const PAGE = 500;
/** Limit of a page of stored events. Each slow reader keeps one page in memory, while new events are shared by all watchers. */
const FOLLOW_BYTES = 1024 * 1024;

/**
 * Follows one conversation from `after` on, without end: first the stored events, then new ones.
 * 1. Watching starts before the first read, so that no event falls between the two.
 * 2. `sent` rises by one with each event. A live event with a seq at or below it was sent already; a seq further ahead
 *    means that some were missed, and the log is read again. So no event is lost or sent twice.
 * 3. Without notifications for `lookMs` the log is read: other processes write it too, and notifications may be lost.
 * 4. A conversation that does not exist yet has an empty log. A log that ends before `sent`, or has another event there,
 *    is a different log: a `reset` comes, then its events.
 * 5. With `threads`, all of this holds for the thread of each open task, from the opening of the task on, and a thread is
 *    read to its end before the end of its task comes.
 */
export async function* followConversation(
  conversation: ConversationId,
  after: number,
  options: FollowOptions,
): AsyncGenerator<Frame, void> {
  const { clock, signal } = options;
  const { lookMs, heartbeatMs } = { lookMs: LOOK_MS, heartbeatMs: HEARTBEAT_MS, ...options };
  const reader = new Reader(conversation, after, options);
  try {
    let quietMs = 0;
    while (!signal.aborted) {
      yield* reader.readBehind();
      const { inbox } = reader;
      const note = inbox.take();
      if (note) yield* reader.take(note);
      else if (inbox.takeOverflow()) reader.fallBehind();
      else if (await inbox.wait(clock, lookMs, signal)) quietMs = 0;
      else {
        reader.fallBehind();
        quietMs += lookMs;
        if (quietMs % heartbeatMs === 0) yield { type: 'heartbeat' };
      }
    }
  } finally {
    reader.inbox.close();
  }
}

/** The conversations of one follower: the one that it named, and threads. */
class Reader {
  readonly inbox: Inbox;
  readonly #options: FollowOptions;
  readonly #all = new Map<string, Followed>();
  /** The last turn that has ended, by conversation and agent. */
  readonly #ended = new Map<string, string>();
  /** By open task. */
  readonly #threads = new Map<string, Followed>();
  readonly #root: Followed;

  constructor(conversation: ConversationId, after: number, options: FollowOptions) {
    this.#options = options;
    this.inbox = new Inbox(options.troupe);
    this.#root = this.#add({ ...BEHIND, conversation, sent: after, from: null });
  }

  #add(followed: Followed): Followed {
    const { conversation } = followed;
    const known = this.#all.get(conversation);
    if (known) return known;
    this.inbox.watch(conversation);
    this.#all.set(conversation, followed);
    return followed;
  }

  #addThread({ thread, delegation, how }: DelegationOpenedBody): void {
    const from = how === 'followUp' ? delegation : null;
    this.#threads.set(delegation, this.#add({ ...BEHIND, conversation: thread, sent: 0, from }));
  }

  fallBehind(): void {
    for (const each of [this.#root, ...this.#threads.values()]) each.isBehind = true;
  }

  /** The stored events of conversations that are behind. */
  async *readBehind(): AsyncGenerator<Frame, void> {
    for (const each of this.#all.values()) if (each.isBehind) yield* this.#read(each);
  }

  async *take(note: Note): AsyncGenerator<Frame, void> {
    if (note.type !== 'event') {
      if (!this.#isOver(note)) yield note;
      return;
    }
    const of = this.#all.get(note.event.conversation);
    if (!of) return;
    if (note.event.seq === of.sent + 1) return yield* this.#next(of, note.event);
    of.isDoubtful ||= note.event.seq <= of.sent && isOfAnotherLog(note.event, of.last);
    of.isBehind ||= of.isDoubtful || note.event.seq > of.sent;
  }

  async *#read(of: Followed): AsyncGenerator<Frame, void> {
    const { troupe, signal } = this.#options;
    of.isBehind = false;
    for (;;) {
      if (of.isDoubtful) yield* this.#compare(of);
      const { events, head } = await readPage(troupe, of.conversation, of.sent);
      if (head < of.sent) {
        yield* this.#restart(of);
        continue;
      }
      const isEmpty = events.length === 0;
      // Releases each event once it is sent.
      for (let event = events.shift(); event; event = events.shift()) yield* this.#next(of, event);
      if (isEmpty || of.sent >= head || signal.aborted) return;
    }
  }

  async *#compare(of: Followed): AsyncGenerator<Frame, void> {
    const { events } = await readPage(this.#options.troupe, of.conversation, of.sent - 1, 1);
    of.isDoubtful = false;
    const [there] = events;
    // A different log may grow beyond this place before it is read again, so the event there is compared.
    const isAnother = there ? of.last && (there.id !== of.last.id || there.at !== of.last.at) : of.sent > 0;
    if (isAnother) yield* this.#restart(of);
  }

  async *#restart(of: Followed): AsyncGenerator<Frame, void> {
    Object.assign(of, { sent: 0, last: null, from: null });
    // Ids of turns and tasks repeat.
    this.#ended.clear();
    if (of !== this.#root) return;
    this.#threads.clear();
    yield { type: 'reset', conversation: of.conversation };
  }

  async *#next(of: Followed, event: Event): AsyncGenerator<Frame, void> {
    const isTold =
      of.from === null || (event.kind === 'delegation.opened' && event.body.delegation === of.from);
    of.last = event;
    if (!isTold) return void (of.sent = event.seq);
    of.from = null;
    if (this.#options.threads && event.kind === 'delegation.opened') this.#addThread(event.body);
    if (event.kind === 'delegation.ended') yield* this.#endThread(event);
    yield { type: 'event', event };
    of.sent = event.seq;
    if (event.turn && isAbout(event, 'turnEnd'))
      this.#ended.set(`${of.conversation} ${event.author.id}`, event.turn);
  }

  /** Whether the turn of a note has ended: notes from another process may come after the end of their turn. */
  #isOver(note: LiveNote): boolean {
    return note.type !== 'state' && this.#ended.get(`${note.conversation} ${note.agent}`) === note.turn;
  }

  async *#endThread({ conversation, body }: EventOf<'delegation.ended'>): AsyncGenerator<Frame, void> {
    const thread = this.#threads.get(body.delegation);
    if (!thread || thread.conversation === conversation) return;
    yield* this.#read(thread);
    this.#threads.delete(body.delegation);
  }
}

const BEHIND = { isBehind: true, last: null, isDoubtful: false };

/** Compares times: an event that was already sent has the same time when it comes again. */
function isOfAnotherLog({ seq, at }: Event, last: Event | null): boolean {
  return last === null || at > last.at || (at === last.at && seq === 1 && last.seq > 1);
}

/** Follows all conversations from now on, or those that `only` accepts. */
export async function* followAll({
  troupe,
  clock,
  signal,
  only,
}: FollowOptions & { only?: (note: Note) => boolean }): AsyncGenerator<Frame, void> {
  const inbox = new Inbox(troupe, only);
  inbox.watch(null);
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
export async function* storedEvents(
  troupe: Pick<Troupe, 'events'>,
  conversation: ConversationId,
  after: number,
  signal?: AbortSignal,
): AsyncGenerator<Event, void> {
  for (let last = after; ;) {
    const { events, head } = await readPage(troupe, conversation, last);
    const isEmpty = events.length === 0;
    // Releases each event once it is sent.
    for (let event = events.shift(); event; event = events.shift()) {
      yield event;
      last = event.seq;
    }
    if (isEmpty || last >= head || signal?.aborted) return;
  }
}

async function readPage(
  troupe: Pick<Troupe, 'events'>,
  conversation: string,
  after: number,
  limit = PAGE,
): Promise<{ events: Event[]; head: number }> {
  try {
    return await troupe.events(conversation, { after, limit, maxBytes: FOLLOW_BYTES });
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
 * A bounded queue of notes. Owns the subscriptions and the unread notes. It drops notes that do not fit, and
 * `takeOverflow` reports it: the log has the events, and notes of running turns are sent again.
 */
class Inbox {
  #notes: Note[] = [];
  #length = 0;
  #overflowed = false;
  #wake: () => void = () => {};
  readonly #troupe: Troupe;
  readonly #watched = new Map<string | null, () => void>();

  readonly #only: (note: Note) => boolean;

  constructor(troupe: Troupe, only: (note: Note) => boolean = () => true) {
    this.#troupe = troupe;
    this.#only = only;
  }

  /** Null: all conversations. */
  watch(conversation: string | null): void {
    const of = conversation === null ? {} : { conversation };
    const unwatch = this.#watched.get(conversation);
    this.#watched.set(
      conversation,
      this.#troupe.watch((note) => this.#add(note), of),
    );
    unwatch?.();
  }

  take(): Note | undefined {
    const note = this.#notes.shift();
    if (note) this.#length -= lengthOf(note);
    return note;
  }

  /** Whether notes were dropped since the last call. If so, watching starts anew, because a new watcher is sent the running turns. */
  takeOverflow(): boolean {
    const overflowed = this.#overflowed;
    this.#overflowed = false;
    if (overflowed) for (const conversation of this.#watched.keys()) this.watch(conversation);
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
    for (const unwatch of this.#watched.values()) unwatch();
  }

  #add(note: Note): void {
    if (!this.#only(note)) return;
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
  return SMALL_NOTE + charsOf(note);
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

/** Seq of the last event, from a page of events; 0 if the conversation does not exist. */
export async function headOf(page: Promise<{ head: number }>): Promise<number> {
  try {
    return (await page).head;
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'conversation_unknown') return 0;
    throw error;
  }
}
