import type { Documents } from '../src/store/documents/documents.ts';
import {
  byStanding,
  emptyRanks,
  type ListedStanding,
  type NewStanding,
  passes,
  type StandingFilter,
  standingPage,
  standingPlaceOf,
} from '../src/store/standings.ts';
import type { DocumentGate, MemoryLog } from './memory-documents.ts';

/** The standings of the documents in memory. */
export function createMemoryStandings(
  logs: ReadonlyMap<string, MemoryLog>,
  gate: DocumentGate,
): Documents['standings'] {
  const of = (tenant: string) => [...logs.values()].filter((log) => log.tenant === tenant);
  const all = (tenant: string) => of(tenant).flatMap((log) => listedOf(log));
  const listed = (tenant: string, filter: StandingFilter) =>
    all(tenant)
      .filter((row) => passes(row, filter))
      .map(withoutTerms);
  const late = (tenant: string) => of(tenant).filter(({ standing, last }) => (standing?.seq ?? 0) < last);

  return {
    save: (log, standing) =>
      gate('standings.save', () => {
        const found = logs.get(`${log.tenant}/${log.conversation}`);
        if (found && found.last >= standing.seq && (found.standing?.seq ?? 0) <= standing.seq)
          found.standing = { ...standing };
      }),
    remove: (log) =>
      gate('standings.remove', () => void delete logs.get(`${log.tenant}/${log.conversation}`)?.standing),
    seqOf: (log) =>
      gate('standings.seqOf', () => logs.get(`${log.tenant}/${log.conversation}`)?.standing?.seq ?? 0),
    list: (query) =>
      gate('standings.list', () => {
        const { tenant, order, after } = query;
        const compare = byStanding(order);
        const placed = listed(tenant, query)
          .map((row) => ({ row, place: standingPlaceOf(row, order) }))
          .filter(({ place }) => !after || compare(after, place) < 0)
          .toSorted((a, b) => compare(a.place, b.place));
        return standingPage(
          placed.map(({ row }) => row),
          query,
        );
      }),
    count: (filter) =>
      gate('standings.count', () => {
        const { tenant, ranges } = filter;
        const ranks = emptyRanks();
        for (const row of listed(tenant, filter)) ranks[row.rank]! += 1;
        const isIn = (id: string) => !ranges || ranges.some(({ from, to }) => id >= from && id < to);
        return { ranks, behind: late(tenant).filter(({ conversation }) => isIn(conversation)).length };
      }),
    behind: ({ tenant, limit }) =>
      gate('standings.behind', () =>
        late(tenant)
          .toSorted((a, b) => endOf(b) - endOf(a))
          .slice(0, limit)
          .map(({ conversation }) => conversation),
      ),
  };
}

function withoutTerms(row: ListedStanding & NewStanding): ListedStanding {
  const { terms: _, ...listed } = row;
  return listed;
}

function listedOf(log: MemoryLog): (ListedStanding & NewStanding)[] {
  const { conversation: id, last: head, standing } = log;
  return standing ? [{ ...standing, id, head, at: endOf(log) }] : [];
}

function endOf({ bySeq, last }: MemoryLog): number {
  return bySeq.get(last)?.at ?? 0;
}
