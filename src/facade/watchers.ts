import type { ConversationLog } from '../actors/log/conversation-log.ts';
import { addressOf, type LiveNote, type TenantId } from '../events/index.ts';
import type { Watcher } from '../troupe.ts';

type Note = Parameters<Watcher>[0];

export interface WatchersParts {
  log: Pick<ConversationLog, 'onAppended'>;
  live: Set<(note: LiveNote) => void>;
  onWarning: (error: unknown, where: string) => void;
}

/**
 * The watchers by conversation, so that an event costs one map lookup, however many conversations are watched.
 *  W1  A watcher is notified of its own tenant only, and if it named a conversation, of that one only.
 *  W2  A watcher that throws does not affect the others.
 *  W3  Without watchers there are no listeners, so that events of other processes are not even read.
 */
export class Watchers {
  readonly #parts: WatchersParts;
  readonly #byConversation = new Map<string, Set<Watcher>>();
  #stopListening: (() => void) | null = null;

  constructor(parts: WatchersParts) {
    this.#parts = parts;
  }

  add(tenant: TenantId, conversation: string | null, watcher: Watcher): () => void {
    const key = keyOf(tenant, conversation);
    const watchers = this.#byConversation.get(key) ?? new Set();
    // Wrapped, because the same function may watch twice.
    const own: Watcher = (note) => watcher(note);
    this.#byConversation.set(key, watchers.add(own));
    this.#stopListening ??= this.#listen();
    return () => {
      if (!watchers.delete(own) || watchers.size > 0 || this.#byConversation.get(key) !== watchers) return;
      this.#byConversation.delete(key);
      if (this.#byConversation.size > 0) return;
      this.#stopListening?.();
      this.#stopListening = null;
    };
  }

  #listen(): () => void {
    const { log, live } = this.#parts;
    const onLive = (note: LiveNote) => this.#notify(addressOf(note), note);
    live.add(onLive);
    const off = log.onAppended((tenant, event) =>
      this.#notify({ tenant, conversation: event.conversation }, { type: 'event', event }),
    );
    return () => {
      live.delete(onLive);
      off();
    };
  }

  #notify({ tenant, conversation }: { tenant: TenantId; conversation: string }, note: Note): void {
    for (const key of [keyOf(tenant, conversation), keyOf(tenant, null)]) {
      for (const watcher of this.#byConversation.get(key) ?? []) {
        try {
          watcher(note);
        } catch (error) {
          this.#parts.onWarning(error, 'watcher');
        }
      }
    }
  }
}

function keyOf(tenant: TenantId, conversation: string | null): string {
  return `${tenant}/${conversation ?? ''}`;
}
