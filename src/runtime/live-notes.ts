import type { EngineDeps } from '../actors/engine/engine-deps.ts';
import type { LiveNote } from '../events/index.ts';
import type { Broadcast } from '../queue/broadcast.ts';

type Listener = (note: LiveNote) => void;

/** What happens in the running turns of all processes, for watchers. */
export function createLiveNotes(broadcast: Broadcast, onWarning: EngineDeps['onWarning']) {
  const listeners = new Set<Listener>();

  /** A listener that throws does not affect the others. */
  function notify(note: LiveNote): void {
    for (const listener of listeners) {
      try {
        listener(note);
      } catch (error) {
        onWarning(error, 'stream watcher');
      }
    }
  }

  function tell(note: LiveNote): void {
    notify(note);
    broadcast.publish(note.type === 'state' ? { type: 'state', note: note.state } : note);
  }

  broadcast.subscribe((notice) => {
    if (notice.type === 'delta' || notice.type === 'activity') notify(notice);
    if (notice.type === 'state') notify({ type: 'state', state: notice.note });
  });
  return {
    listeners,
    sinks: {
      onDelta: (delta) => tell({ type: 'delta', delta }),
      onActivity: (activity) => tell({ type: 'activity', activity }),
      onState: (state) => tell({ type: 'state', state }),
    } satisfies Pick<EngineDeps, 'onDelta' | 'onActivity' | 'onState'>,
  };
}
