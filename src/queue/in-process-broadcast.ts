import type { Broadcast, Notice } from './broadcast.ts';

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

/** The listeners of one member. */
interface Listeners {
  add: (listener: (notice: Notice) => void) => () => void;
  tell: (notice: Notice) => void;
  clear: () => void;
}

/** A listener that throws takes nothing from the others (B3). */
export function createListeners(onWarning: (error: unknown, where: string) => void): Listeners {
  // Each subscription is one of its own, even if the same function subscribes twice.
  const all = new Set<{ hear: (notice: Notice) => void }>();
  return {
    add(hear) {
      const listener = { hear };
      all.add(listener);
      return () => void all.delete(listener);
    },
    tell(notice) {
      for (const listener of all) {
        try {
          listener.hear(notice);
        } catch (error) {
          onWarning(error, 'listener of notices');
        }
      }
    },
    clear: () => all.clear(),
  };
}
