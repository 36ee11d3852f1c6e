import type { EngineDeps } from '../actors/engine/engine-deps.ts';
import type { ConversationId, LiveNote, TenantId } from '../events/index.ts';
import type { Broadcast } from '../queue/broadcast.ts';
import { createLiveBook } from './live-book.ts';
import { createRunningBook, type HeardTurn } from './running-book.ts';

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

/** The feed of a process, and the ends of its engine. A turn is remembered by the process that works on it, while it does. */
export function createLiveFeed(
  broadcast: Broadcast,
  onWarning: EngineDeps['onWarning'],
  now: () => number = Date.now,
): { feed: LiveFeed; sinks: Required<Pick<EngineDeps, 'onDelta' | 'onActivity' | 'onState'>> } {
  const listeners = new Set<LiveListener>();
  const own = createLiveBook();
  const running = createRunningBook(now);

  /** A listener that throws does not affect the others. */
  function notify(note: LiveNote | Again): void {
    if (note.type !== 'again') running.note(note);
    for (const listener of listeners) {
      try {
        listener(note);
      } catch (error) {
        onWarning(error, 'stream watcher');
      }
    }
  }

  function tell(note: LiveNote): void {
    own.note(note);
    notify(note);
    broadcast.publish(note.type === 'state' ? { type: 'state', note: note.state } : note);
  }

  broadcast.subscribe((notice) => {
    if (notice.type === 'delta' || notice.type === 'activity') notify(notice);
    if (notice.type === 'state') notify({ type: 'state', state: notice.note });
    if (notice.type === 'recalled') notify({ ...notice, type: 'again' });
    if (notice.type !== 'recall') return;
    const { tenant, conversation } = notice;
    const notes = own.of({ tenant, conversation });
    if (notes.length > 0) broadcast.publish({ type: 'recalled', tenant, conversation, notes });
  });
  return {
    feed: {
      listen(listener) {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
      running: () => running.all(),
      recall(tenant, conversation) {
        broadcast.publish({ type: 'recall', tenant, conversation });
        return own.of({ tenant, conversation });
      },
    },
    sinks: {
      onDelta: (delta) => tell({ type: 'delta', delta }),
      onActivity: (activity) => tell({ type: 'activity', activity }),
      onState: (state) => tell({ type: 'state', state }),
    },
  };
}
