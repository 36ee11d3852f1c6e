import type { ActorKey, EventRow, StoreDriver } from '../driver.ts';
import type { Addressee, Documents } from './documents.ts';

interface Due extends ActorKey {
  /** Sort key: time of the oldest event to process, or -1 with a pinned turn, an outbox or an ended timer. */
  at: number;
}

/** Bounds the actors in memory during one query. */
const MAX_UNFINISHED = 20_000;
/** Actors whose processed seq is cached from page to page. */
const MAX_KNOWN = 50_000;

/**
 * Actors with work, each once. A hint, because the rows may change during the query. Its memory is bounded: one page of
 * events, the processed seq of `MAX_KNOWN` actors, and for each agent id the first `limit` due actors.
 */
export async function findDue(
  { actors, events }: Pick<Documents, 'actors' | 'events'>,
  { now, clock, since, limit }: Parameters<StoreDriver['due']>[0],
): Promise<ActorKey[]> {
  const due = createDueList(limit);
  const progress = createProgress(actors, now);
  for (const key of await actors.unfinished({ now, clock, limit: MAX_UNFINISHED }))
    due.add({ ...keyOf(key), at: -1 });
  await events.visitAddressees(since, async (page) => {
    const others = page.filter((each) => !due.has(each) && !due.isFull(each.agent));
    for (const each of await progress.unprocessed(others)) due.add({ ...keyOf(each), at: each.at });
  });
  return due.takeTurns().slice(0, limit).map(keyOf);
}

function createDueList(limit: number) {
  const found = new Map<string, Due>();
  const counts = new Map<string, number>();
  const isFull = (agent: string) => (counts.get(agent) ?? 0) >= limit;
  return {
    has: (key: ActorKey) => found.has(nameOf(key)),
    /** The oldest work comes first, so later work for the same agent id could not be chosen. */
    isFull,
    add(each: Due): void {
      if (isFull(each.agent)) return;
      counts.set(each.agent, (counts.get(each.agent) ?? 0) + 1);
      found.set(nameOf(each), each);
    },
    takeTurns: () => takeTurns([...found.values()]),
  };
}

function createProgress(actors: Documents['actors'], now: number) {
  /** The processed seq of each actor when it was last read. It only grows, so an old value costs at most one more read. */
  const known = new Map<string, number>();

  async function unprocessed(addressees: readonly Addressee[]): Promise<Addressee[]> {
    const unknown = addressees.filter((each) => (known.get(nameOf(each)) ?? -1) < each.seq);
    if (unknown.length === 0) return [];
    if (known.size >= MAX_KNOWN) known.clear();
    const rows = new Map((await actors.findMany(unknown.map(keyOf))).map((row) => [nameOf(row), row]));
    return unknown.filter((each) => {
      const row = rows.get(nameOf(each));
      if (!row) return true;
      known.set(nameOf(each), row.processed);
      return row.until < now && row.parked === null && row.processed < each.seq;
    });
  }

  return { unprocessed };
}

/** Agent ids alternate, oldest work first within each, so that work for an agent that no process serves delays no other. */
function takeTurns(due: readonly Due[]): Due[] {
  const places = new Map<string, number>();
  const ranked = due
    .toSorted((a, b) => a.at - b.at)
    .map((each) => {
      const place = places.get(each.agent) ?? 0;
      places.set(each.agent, place + 1);
      return { each, place };
    });
  return ranked.toSorted((a, b) => a.place - b.place || a.each.at - b.each.at).map(({ each }) => each);
}

/** The part of an event that says whom it addresses. */
export type AddressedEvent = Pick<EventRow, 'tenant' | 'conversation' | 'seq' | 'at' | 'to'>;

/** Each addressed actor once, with the seq of its newest event and the time of its oldest. Keeps the order of the events. */
export function eachAddressee(events: readonly AddressedEvent[]): Addressee[] {
  const found = new Map<string, Addressee>();
  for (const { tenant, conversation, seq, at, to } of events) {
    for (const agent of to) {
      const each = { tenant, conversation, agent, seq, at };
      const known = found.get(nameOf(each));
      if (!known) found.set(nameOf(each), each);
      else Object.assign(known, { seq: Math.max(known.seq, seq), at: Math.min(known.at, at) });
    }
  }
  return [...found.values()];
}

function keyOf({ tenant, conversation, agent }: ActorKey): ActorKey {
  return { tenant, conversation, agent };
}

function nameOf({ tenant, conversation, agent }: ActorKey): string {
  return `${tenant}/${conversation}/${agent}`;
}
