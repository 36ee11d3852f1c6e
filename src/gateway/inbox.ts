import type { Clock } from '../clock.ts';
import type { Event } from '../events/index.ts';
import type { Troupe, Watcher } from '../troupe.ts';

export type Note = Parameters<Watcher>[0];

/** Notes kept for a reader that is slower than the troupe. */
const MAX_NOTES = 1_000;

/**
 * What happened since a reader last looked, bounded. Owns the subscription and the unread notes; what did not fit is
 * gone, and `takeOverflow` says so: the log has the events, and deltas are not promised.
 */
export class Inbox {
  #notes: Note[] = [];
  #overflowed = false;
  #wake: () => void = () => {};
  readonly #unwatch: () => void;

  constructor(troupe: Troupe, conversation: string | null) {
    this.#unwatch = troupe.watch((note) => {
      if (conversation === null || conversationOf(note) === conversation) this.#add(note);
    });
  }

  take(): Note | undefined {
    return this.#notes.shift();
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
    this.#wake = () => awake.abort();
    signal.addEventListener('abort', this.#wake, { once: true });
    if (!signal.aborted) await clock.sleep(ms, awake.signal);
    signal.removeEventListener('abort', this.#wake);
    return this.#notes.length > 0;
  }

  close(): void {
    this.#unwatch();
  }

  #add(note: Note): void {
    if (this.#notes.length < MAX_NOTES) this.#notes.push(note);
    else this.#overflowed = true;
    this.#wake();
  }
}

function conversationOf(note: Note): Event['conversation'] {
  if (note.type === 'event') return note.event.conversation;
  return (note.type === 'delta' ? note.delta : note.state).address.conversation;
}
