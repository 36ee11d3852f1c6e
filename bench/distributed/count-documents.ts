import type { Documents } from '../../src/store/documents/documents.ts';

/** Operations of a store, one round trip each, and the bytes of JSON given to it to write. */
export interface Counted {
  documents: Documents;
  /** Since the last call of `take`. */
  take(): { trips: number; bytes: number; byName: Record<string, number> };
}

const WRITES = new Set(['insert', 'update', 'replace']);

export function countDocuments(inner: Documents): Counted {
  let counts = { trips: 0, bytes: 0, byName: {} as Record<string, number> };

  function counted<T extends object>(target: T, collection: string): T {
    return new Proxy(target, {
      get(_, name: string) {
        const method = target[name as keyof T] as (...args: unknown[]) => unknown;
        return (...args: unknown[]) => {
          const known = `${collection}.${name}`;
          counts.trips += 1;
          counts.byName[known] = (counts.byName[known] ?? 0) + 1;
          if (WRITES.has(name)) counts.bytes += Buffer.byteLength(JSON.stringify(args));
          return method.apply(target, args);
        };
      },
    });
  }

  return {
    documents: {
      ...inner,
      events: counted(inner.events, 'events'),
      actors: counted(inner.actors, 'actors'),
      entries: counted(inner.entries, 'entries'),
    },
    take() {
      const taken = counts;
      counts = { trips: 0, bytes: 0, byName: {} };
      return taken;
    },
  };
}
