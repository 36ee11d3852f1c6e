import type { EngineDeps } from '../../actors/actor/engine-deps.ts';
import type { ConversationId, LiveNote, TenantId } from '../../events/index.ts';
import type { Broadcast } from '../../queue/broadcast.ts';
import { createLiveBook, type HeardTurn } from './live-book.ts';

/** What happens in the running turns of all processes, for watchers. */
export interface LiveFeed {
  listen(listener: LiveListener): () => void;
  /** The running turns of all processes, as heard. */
  running(): HeardTurn[];
  /**
   * The running turns of a conversation, told from their beginning: those of this process at once; those of others come to
   * the listeners as `again`.
   */
  recall(tenant: TenantId, conversation: ConversationId): readonly LiveNote[];
}

type Again = { type: 'again'; tenant: TenantId; conversation: ConversationId; notes: readonly LiveNote[] };
type LiveListener = (note: LiveNote | Again) => void;

/** The feed of a process, and the end of its engine. A turn is remembered by the process that works on it, while it does. */
export function createLiveFeed(
  broadcast: Broadcast,
  onWarning: EngineDeps['onWarning'],
  now: () => number = Date.now,
): { feed: LiveFeed; tell: (note: LiveNote) => void } {
  const listeners = new Set<LiveListener>();
  const book = createLiveBook(now);

  /** A listener that throws does not affect the others. */
  function notify(note: LiveNote | Again): void {
    for (const listener of listeners) {
      try {
        listener(note);
      } catch (error) {
        onWarning(error, 'stream watcher');
      }
    }
  }

  broadcast.subscribe((notice) => {
    if ('agent' in notice) {
      book.hear(notice);
      notify(notice);
    } else if (notice.type === 'recalled') notify({ ...notice, type: 'again' });
    else if (notice.type === 'recall') {
      const { tenant, conversation } = notice;
      const notes = book.of(notice);
      if (notes.length > 0) broadcast.publish({ type: 'recalled', tenant, conversation, notes });
    }
  });
  return {
    feed: {
      listen(listener) {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
      running: () => book.running(),
      recall(tenant, conversation) {
        broadcast.publish({ type: 'recall', tenant, conversation });
        return book.of({ tenant, conversation });
      },
    },
    tell(note) {
      book.note(note);
      if (listeners.size > 0) notify(note);
      broadcast.publish(note);
    },
  };
}
