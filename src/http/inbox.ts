import type { Clock } from '../clock.ts';
import { eventJson } from './event-json.ts';
import type { Troupe, Watcher } from '../troupe.ts';

export type Note = Parameters<Watcher>[0];

/** Notes kept for a reader that is slower than the troupe, and how long they are together, in characters. */
const MAX_NOTES = 1_000;
const MAX_LENGTH = 4 * 1_024 * 1_024;
const SMALL_NOTE = 300;
/** Without one, an error with its stack is made for each note that somebody waits for. */
const WOKEN = Symbol('woken');

/**
 * What happened since a reader last looked, bounded. Owns the subscription and the unread notes; what did not fit is
 * gone, and `takeOverflow` says so: the log has the events, and deltas are not promised.
 */
export class Inbox {
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

  /** Whether notes were dropped since the last call. */
  takeOverflow(): boolean {
    const overflowed = this.#overflowed;
    this.#overflowed = false;
    return overflowed;
  }

  /** Resolves when there is something to take, `signal` aborts or the time is up, with whether there is something. */
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

/** About as much as it takes on its way out. */
function lengthOf(note: Note): number {
  if (note.type === 'event') return eventJson(note.event).length;
  return SMALL_NOTE + (note.type === 'delta' ? note.delta.text.length : 0);
}
