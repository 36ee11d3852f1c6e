import type { Broadcast, Notice } from './broadcast.ts';

type Warn = (error: unknown, where: string) => void;

/** Connects the members of one process. Publishing costs nothing for a single member, such as an embedded troupe. */
export function createBroadcastHub(): { join: (onWarning: Warn) => Broadcast } {
  const members = new Map<object, (notice: Notice) => void>();

  function join(onWarning: Warn): Broadcast {
    const me = {};
    const listeners = createListeners(onWarning);
    members.set(me, listeners.notify);

    function deliver(notice: Notice): void {
      for (const [member, notify] of members) if (member !== me) notify(notice);
    }

    return {
      publish(notice) {
        if (!members.has(me) || members.size === 1) return;
        // Delivered later, as over a network: listeners must not run inside the publisher's call.
        queueMicrotask(() => deliver(notice));
      },
      isAlone: () => members.size === 1,
      subscribe: listeners.add,
      async close() {
        members.delete(me);
        listeners.clear();
      },
    };
  }

  return { join };
}

/** A listener that throws does not affect the others (B3). */
export function createListeners(onWarning: Warn) {
  // The same function may subscribe twice; each subscription is separate.
  const all = new Set<{ onNotice: (notice: Notice) => void }>();
  return {
    add: (onNotice: (notice: Notice) => void): (() => void) => {
      const listener = { onNotice };
      all.add(listener);
      return () => void all.delete(listener);
    },
    notify: (notice: Notice): void => {
      for (const listener of all) {
        try {
          listener.onNotice(notice);
        } catch (error) {
          onWarning(error, 'notice listener');
        }
      }
    },
    clear: (): void => all.clear(),
  };
}
