import type { ActorKey, StoreDriver } from '../driver.ts';
import type { Addressee, Documents } from './documents.ts';

interface Due extends ActorKey {
  /** Where it stands among those of its agent; those in the middle of something, or whose time has come, stand first. */
  at: number;
}

/** Bounds what one look holds in memory. */
const MAX_UNFINISHED = 20_000;

/** Actors with something to do, each once. What they are found by may change meanwhile: the answer is a hint. */
export async function findDue(
  { actors, events }: Pick<Documents, 'actors' | 'events'>,
  { now, clock, since, limit }: Parameters<StoreDriver['due']>[0],
): Promise<ActorKey[]> {
  const [unfinished, addressees] = await Promise.all([
    actors.unfinished({ now, clock, limit: MAX_UNFINISHED }),
    events.addressees(since),
  ]);
  const due = new Map<string, Due>();
  for (const key of unfinished) due.set(nameOf(key), { ...keyOf(key), at: -1 });
  const others = addressees.filter((each) => !due.has(nameOf(each)));
  for (const each of await unprocessed(actors, others, now))
    due.set(nameOf(each), { ...keyOf(each), at: each.at });
  return takeTurns([...due.values()])
    .slice(0, limit)
    .map(keyOf);
}

async function unprocessed(
  actors: Documents['actors'],
  addressees: readonly Addressee[],
  now: number,
): Promise<Addressee[]> {
  if (addressees.length === 0) return [];
  const rows = new Map((await actors.findMany(addressees.map(keyOf))).map((row) => [nameOf(row), row]));
  return addressees.filter((each) => {
    const row = rows.get(nameOf(each));
    return !row || (row.until < now && row.parked === null && row.processed < each.seq);
  });
}

/**
 * Names of agents take turns, oldest first within one, so that a pile of work for an agent that nobody serves holds up
 * no other.
 */
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

function keyOf({ tenant, conversation, agent }: ActorKey): ActorKey {
  return { tenant, conversation, agent };
}

function nameOf({ tenant, conversation, agent }: ActorKey): string {
  return `${tenant}/${conversation}/${agent}`;
}
