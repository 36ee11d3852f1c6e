import type { ActorKey, StoreDriver } from '../driver.ts';
import type { Database } from './database.ts';
import { allRows } from './database.ts';

/**
 * Actors with something to do, each once: those in the middle of something or whose time has come, then those only addressed. Names of agents
 * take turns, oldest first within one, so that a pile of work for an agent that nobody serves holds up no other.
 */
export function createDueQuery(database: Database) {
  const select = database.prepare(
    `WITH due AS (
       SELECT log, agent, -1 AS at FROM actors INDEXED BY actors_unfinished
       WHERE (turn IS NOT NULL OR outbox = 1) AND until < :now AND parked IS NULL
       UNION ALL
       SELECT log, agent, -1 AS at FROM actors INDEXED BY actors_timed
       WHERE wakeAt <= :clock AND until < :now AND parked IS NULL AND turn IS NULL AND outbox = 0
       UNION ALL
       SELECT pending.log, pending.agent, pending.at FROM pending
       LEFT JOIN actors ON actors.log = pending.log AND actors.agent = pending.agent
       WHERE pending.at >= :since AND (actors.num IS NULL OR (
         actors.until < :now AND actors.parked IS NULL AND actors.processed < pending.seq
         AND actors.turn IS NULL AND actors.outbox = 0
         AND (actors.wakeAt IS NULL OR actors.wakeAt > :clock)))
     ),
     ranked AS (
       SELECT log, agent, at, row_number() OVER (PARTITION BY agent ORDER BY at) AS place FROM due
       ORDER BY place, at LIMIT :limit
     )
     SELECT tenant, conversation, agent FROM ranked JOIN logs ON logs.num = log ORDER BY place, at`,
  );

  return ({ now, clock, since, limit }: Parameters<StoreDriver['due']>[0]): ActorKey[] =>
    allRows<ActorKey>(select, { now, clock, since, limit }).map(({ tenant, conversation, agent }) => ({
      tenant,
      conversation,
      agent,
    }));
}
