import type { ConversationLog } from '../../actors/log/conversation-log.ts';
import type { ConversationId, LiveNote, Note, TenantId } from '../../events/index.ts';
import type { Watcher } from '../troupe.ts';
import type { LiveFeed } from './live-feed.ts';
import { LiveGate } from './live-gate.ts';

interface WatchersParts {
  log: Pick<ConversationLog, 'onAppended'>;
  live: LiveFeed;
  onWarning: (error: unknown, where: string) => void;
}

interface Watching {
  tell(note: Note): void;
  /** Running turns are told from their beginning. A watcher of all conversations is not. */
  tellAgain?(notes: readonly LiveNote[]): void;
}

/** The watchers of a tenant. */
interface Watched {
  all: Set<Watching>;
  byConversation: Map<string, Set<Watching>>;
}

/**
 * The watchers by conversation, so that an event costs one map lookup, however many conversations are watched.
 *  W1  A watcher is notified of its own tenant only, and if it named a conversation, of that one only.
 *  W2  A watcher that throws does not affect the others.
 *  W3  Without watchers there are no listeners, so that events of other processes are not even read.
 *  W4  A watcher of one conversation is told first what its running turns have said so far, and then each text once and in
 *      order. A watcher of all conversations is told what comes, as it comes.
 */
export class Watchers {
  readonly #parts: WatchersParts;
  readonly #byTenant = new Map<TenantId, Watched>();
  #stopListening: (() => void) | null = null;

  constructor(parts: WatchersParts) {
    this.#parts = parts;
  }

  add(tenant: TenantId, conversation: string | null, watcher: Watcher): () => void {
    const own =
      conversation === null
        ? { tell: watcher }
        : this.#gated(tenant, conversation as ConversationId, watcher);
    const watched = this.#byTenant.get(tenant) ?? { all: new Set(), byConversation: new Map() };
    this.#byTenant.set(tenant, watched);
    const { all, byConversation } = watched;
    const watchers = conversation === null ? all : (byConversation.get(conversation) ?? new Set());
    if (conversation !== null) byConversation.set(conversation, watchers);
    watchers.add(own);
    this.#stopListening ??= this.#listen();
    if (conversation !== null) {
      queueMicrotask(() => {
        if (watchers.has(own)) this.#recall(tenant, conversation as ConversationId, own);
      });
    }
    return () => {
      if (!watchers.delete(own) || watchers.size > 0) return;
      if (conversation !== null && byConversation.get(conversation) === watchers)
        byConversation.delete(conversation);
      if (all.size > 0 || byConversation.size > 0 || this.#byTenant.get(tenant) !== watched) return;
      this.#byTenant.delete(tenant);
      if (this.#byTenant.size > 0) return;
      this.#stopListening?.();
      this.#stopListening = null;
    };
  }

  #gated(tenant: TenantId, conversation: ConversationId, watcher: Watcher): Watching {
    const gate = new LiveGate(watcher, () => this.#recall(tenant, conversation, own));
    const own: Watching = {
      tell: (note) => (note.type === 'event' ? watcher(note) : gate.take(note)),
      tellAgain: (notes) => gate.takeAgain(notes),
    };
    return own;
  }

  #recall(tenant: TenantId, conversation: ConversationId, to: Watching): void {
    const notes = this.#parts.live.recall(tenant, conversation);
    if (notes.length > 0) this.#tellAgain([to], notes);
  }

  #listen(): () => void {
    const { log, live } = this.#parts;
    const stopLive = live.listen((note) => {
      const { tenant, conversation } = note;
      if (note.type !== 'again') return this.#tell(tenant, conversation, note);
      this.#tellAgain(this.#byTenant.get(tenant)?.byConversation.get(conversation) ?? [], note.notes);
    });
    const stopLog = log.onAppended((tenant, event) =>
      this.#tell(tenant, event.conversation, { type: 'event', event }),
    );
    return () => {
      stopLive();
      stopLog();
    };
  }

  #tell(tenant: TenantId, conversation: ConversationId, note: Note): void {
    const watched = this.#byTenant.get(tenant);
    if (!watched) return;
    for (const watchers of [watched.byConversation.get(conversation) ?? [], watched.all]) {
      for (const watching of watchers) {
        try {
          watching.tell(note);
        } catch (error) {
          this.#parts.onWarning(error, 'watcher');
        }
      }
    }
  }

  #tellAgain(watchers: Iterable<Watching>, notes: readonly LiveNote[]): void {
    for (const watching of watchers) {
      try {
        watching.tellAgain?.(notes);
      } catch (error) {
        this.#parts.onWarning(error, 'watcher');
      }
    }
  }
}
