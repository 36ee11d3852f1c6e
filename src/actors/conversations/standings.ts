import { foldStanding, newStanding, type Standing } from '../../machines/standing.ts';
import type { Log } from '../../store/store.ts';
import { type PageSource, readPages } from '../log/read-pages.ts';

/** The standings of the conversations that are talked in. They can be lost at any moment: a look at the log makes them anew. */
export interface Standings {
  of(log: Log): Promise<Standing>;
  forget(log: Log): void;
}

/** Conversations at most; the least recently looked at is forgotten first. */
const KEPT = 1_024;

export function createStandings(events: PageSource): Standings {
  const known = new Map<string, Standing>();
  const keyOf = ({ tenant, conversation }: Log) => `${tenant}/${conversation}`;
  return {
    async of(log) {
      const key = keyOf(log);
      const standing = known.get(key) ?? newStanding();
      await catchUp(events, log, standing);
      known.delete(key);
      known.set(key, standing);
      if (known.size > KEPT) known.delete(known.keys().next().value ?? key);
      return standing;
    },
    forget: (log) => void known.delete(keyOf(log)),
  };
}

/** For a single look. */
export async function standingOf(events: PageSource, log: Log): Promise<Standing> {
  const standing = newStanding();
  await catchUp(events, log, standing);
  return standing;
}

/** Two may catch up with one standing at once: an event is folded by whoever comes first. */
async function catchUp(events: PageSource, log: Log, standing: Standing): Promise<void> {
  for await (const page of readPages(events, log, { after: standing.tasks.upTo }))
    for (const event of page) foldStanding(standing, event);
}
