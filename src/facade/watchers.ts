import type { ConversationLog } from '../actors/log/conversation-log.ts';
import type { StateNote, StreamDelta, TenantId } from '../events/index.ts';
import type { Watcher } from '../troupe.ts';

type Note = Parameters<Watcher>[0];

export interface WatchersParts {
  log: Pick<ConversationLog, 'onAppended'>;
  deltas: Set<(delta: StreamDelta) => void>;
  states?: Set<(note: StateNote) => void> | undefined;
  onWarning: (error: unknown, where: string) => void;
}

/**
 * Who watches which conversations. A thousand readers of a thousand conversations cost an event of one of them a look
 * into a map, and not a thousand questions whose it is.
 *  W1  A watcher hears of its own tenant alone, and of one conversation where it named one.
 *  W2  One that throws takes nothing from the others.
 *  W3  While nobody watches, nothing is listened to: events of other processes are not even read.
 */
export class Watchers {
  readonly #parts: WatchersParts;
  readonly #byPlace = new Map<string, Set<Watcher>>();
  #silence: (() => void) | null = null;

  constructor(parts: WatchersParts) {
    this.#parts = parts;
  }

  add(tenant: TenantId, conversation: string | null, watcher: Watcher): () => void {
    const place = placeOf(tenant, conversation);
    const there = this.#byPlace.get(place) ?? new Set();
    // Wrapped, so that the same function may watch twice.
    const own: Watcher = (note) => watcher(note);
    this.#byPlace.set(place, there.add(own));
    this.#silence ??= this.#listen();
    return () => {
      if (!there.delete(own) || there.size > 0 || this.#byPlace.get(place) !== there) return;
      this.#byPlace.delete(place);
      if (this.#byPlace.size > 0) return;
      this.#silence?.();
      this.#silence = null;
    };
  }

  #listen(): () => void {
    const { log, deltas, states } = this.#parts;
    const onDelta = (delta: StreamDelta) => this.#tell(delta.address, { type: 'delta', delta });
    const onState = (state: StateNote) => this.#tell(state.address, { type: 'state', state });
    deltas.add(onDelta);
    states?.add(onState);
    const off = log.onAppended((tenant, event) =>
      this.#tell({ tenant, conversation: event.conversation }, { type: 'event', event }),
    );
    return () => {
      deltas.delete(onDelta);
      states?.delete(onState);
      off();
    };
  }

  #tell({ tenant, conversation }: { tenant: TenantId; conversation: string }, note: Note): void {
    for (const place of [placeOf(tenant, conversation), placeOf(tenant, null)]) {
      for (const watcher of this.#byPlace.get(place) ?? []) {
        try {
          watcher(note);
        } catch (error) {
          this.#parts.onWarning(error, 'watcher');
        }
      }
    }
  }
}

function placeOf(tenant: TenantId, conversation: string | null): string {
  return `${tenant}/${conversation ?? ''}`;
}
