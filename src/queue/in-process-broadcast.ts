import type { Broadcast, Notice } from './broadcast.ts';
import { createListeners } from './listeners.ts';

/** Joins the members of one process. A member alone, as an embedded troupe is, speaks to nobody, which costs nothing. */
export interface BroadcastHub {
  join(onWarning: (error: unknown, where: string) => void): Broadcast;
}

export function createBroadcastHub(): BroadcastHub {
  const members = new Map<object, (notice: Notice) => void>();

  function join(onWarning: (error: unknown, where: string) => void): Broadcast {
    const me = {};
    const listeners = createListeners(onWarning);
    members.set(me, listeners.tell);

    function deliver(notice: Notice): void {
      for (const [member, tell] of members) if (member !== me) tell(notice);
    }

    return {
      publish(notice) {
        if (!members.has(me) || members.size === 1) return;
        // Later, as over a network: no listener runs inside the publisher's work.
        queueMicrotask(() => deliver(notice));
      },
      subscribe: listeners.add,
      async close() {
        members.delete(me);
        listeners.clear();
      },
    };
  }

  return { join };
}
