import type { ConversationLog } from '../actors/log/conversation-log.ts';
import type { ConversationId, LiveNote, Note, TenantId } from '../events/index.ts';
import type { Watcher } from '../troupe.ts';
import type { LiveFeed } from './live-feed.ts';
import { LiveGate } from './live-gate.ts';

export interface WatchersParts {
  log: Pick<ConversationLog, 'onAppended'>;
  live: LiveFeed;
  onWarning: (error: unknown, where: string) => void;
}

interface Watching {
  tell(note: Note): void;
  /** Running turns are told from their beginning. */
  tellAgain(notes: readonly LiveNote[]): void;
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
  readonly #byConversation = new Map<string, Set<Watching>>();
  #stopListening: (() => void) | null = null;

  constructor(parts: WatchersParts) {
    this.#parts = parts;
  }

  add(tenant: TenantId, conversation: string | null, watcher: Watcher): () => void {
    const key = keyOf(tenant, conversation);
    const watchers = this.#byConversation.get(key) ?? new Set();
    const own =
      conversation === null ? plain(watcher) : this.#gated(tenant, conversation as ConversationId, watcher);
    this.#byConversation.set(key, watchers.add(own));
    this.#stopListening ??= this.#listen();
    if (conversation !== null) {
      queueMicrotask(() => {
        if (watchers.has(own)) this.#recall(tenant, conversation as ConversationId, own);
      });
    }
    return () => {
      if (!watchers.delete(own) || watchers.size > 0 || this.#byConversation.get(key) !== watchers) return;
      this.#byConversation.delete(key);
      if (this.#byConversation.size > 0) return;
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
    if (notes.length > 0) this.#try(() => to.tellAgain(notes));
  }

  #listen(): () => void {
    const { log, live } = this.#parts;
    const stopLive = live.listen((note) => {
      if (note.type !== 'again') return this.#notify(note.tenant, note.conversation, note);
      for (const watching of this.#byConversation.get(keyOf(note.tenant, note.conversation)) ?? [])
        this.#try(() => watching.tellAgain(note.notes));
    });
    const stopLog = log.onAppended((tenant, event) =>
      this.#notify(tenant, event.conversation, { type: 'event', event }),
    );
    return () => {
      stopLive();
      stopLog();
    };
  }

  #notify(tenant: TenantId, conversation: ConversationId, note: Note): void {
    for (const key of [keyOf(tenant, conversation), keyOf(tenant, null)]) {
      for (const watching of this.#byConversation.get(key) ?? []) this.#try(() => watching.tell(note));
    }
  }

  #try(tell: () => void): void {
    try {
      tell();
    } catch (error) {
      this.#parts.onWarning(error, 'watcher');
    }
  }
}

function plain(watcher: Watcher): Watching {
  return { tell: (note) => watcher(note), tellAgain: () => {} };
}

function keyOf(tenant: TenantId, conversation: string | null): string {
  return `${tenant}/${conversation ?? ''}`;
}
