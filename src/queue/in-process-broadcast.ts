import type { Broadcast, Notice } from './broadcast.ts';

/** Connects the members of one process. Publishing costs nothing for a single member, such as an embedded troupe. */
export interface BroadcastHub {
  join(onWarning: (error: unknown, where: string) => void): Broadcast;
}

export function createBroadcastHub(): BroadcastHub {
  const members = new Map<object, (notice: Notice) => void>();

  function join(onWarning: (error: unknown, where: string) => void): Broadcast {
    const me = {};
    const listeners = createListeners(onWarning);
    members.set(me, listeners.notify);

    function deliver(notice: Notice): void {
      for (const [member, notify] of members) if (member !== me) notify(notice);
    }

    return {
      publish(notice) {
        if (!members.has(me) || members.size === 1) return;
        // Delivered later, as over a network: no listener runs inside the publisher's call.
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

interface Listeners {
  add: (listener: (notice: Notice) => void) => () => void;
  notify: (notice: Notice) => void;
  clear: () => void;
}

/** A listener that throws does not affect the others (B3). */
export function createListeners(onWarning: (error: unknown, where: string) => void): Listeners {
  // The same function may subscribe twice; each subscription is separate.
  const all = new Set<{ onNotice: (notice: Notice) => void }>();
  return {
    add(onNotice) {
      const listener = { onNotice };
      all.add(listener);
      return () => void all.delete(listener);
    },
    notify(notice) {
      for (const listener of all) {
        try {
          listener.onNotice(notice);
        } catch (error) {
          onWarning(error, 'notice listener');
        }
      }
    },
    clear: () => all.clear(),
  };
}
