import type { Notice } from './broadcast.ts';

/** The listeners of one member. */
export interface Listeners {
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
