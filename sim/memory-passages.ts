import type { Documents } from '../src/store/documents/documents.ts';
import { hasTerm } from '../src/store/passages.ts';
import type { DocumentGate, MemoryLog } from './memory-documents.ts';

/** The passages of the documents in memory, as a part of their log. */
export function createMemoryPassages(
  logs: ReadonlyMap<string, MemoryLog>,
  gate: DocumentGate,
): Documents['passages'] {
  return {
    save: (log, passages) =>
      gate('passages.save', () => {
        const found = logs.get(`${log.tenant}/${log.conversation}`);
        if (!found) return;
        found.passages ??= new Map();
        for (const passage of passages) {
          if (passage.last > found.last) continue;
          const old = found.passages.get(passage.first);
          if (!old || old.last <= passage.last) found.passages.set(passage.first, { ...passage });
        }
      }),
    remove: (log) =>
      gate('passages.remove', () => logs.get(`${log.tenant}/${log.conversation}`)?.passages?.clear()),
    find: ({ tenant, terms, from, ranges, limit, after }) =>
      gate('passages.find', () => {
        const isIn = (id: string) => !ranges || ranges.some((range) => id >= range.from && id < range.to);
        return [...logs.values()]
          .filter((log) => log.tenant === tenant && isIn(log.conversation))
          .flatMap(({ conversation: id, passages }) =>
            [...(passages?.values() ?? [])]
              .filter((passage) => terms.every((term) => hasTerm(passage.terms, term)))
              .map(({ first, last, at }) => ({ id, first, last, at, place: placeOf(at, id, first) })),
          )
          .filter(({ at, place }) => (from === undefined || at >= from) && (!after || place < after))
          .toSorted((a, b) => (a.place < b.place ? 1 : -1))
          .slice(0, limit);
      }),
  };
}

function placeOf(at: number, id: string, first: number): string {
  return `${String(at).padStart(16, '0')}/${id}/${String(first).padStart(10, '0')}`;
}
