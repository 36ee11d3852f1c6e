import { setImmediate } from 'node:timers/promises';
import {
  type ConversationPage,
  type ConversationPlace,
  type ConversationRow,
  type ConversationsQuery,
  pageOf,
  placeOf,
} from '../driver.ts';
import type { IdRange } from '../id-range.ts';
import { allRows, type Database } from './database.ts';

/** Maximum of conversations found by name and sorted; for more, the newest ones are scanned. */
const MOST_NAMED = 1_000;
/** Maximum of scanned conversations per page. */
const MOST_LOOKED_AT = 20_000;
/** Rows read in one turn of the event loop. */
const STEP = 2_000;
/** The position before all conversations. */
const NEWEST: ConversationPlace = { at: Number.MAX_SAFE_INTEGER, id: '' };

/**
 * Lists conversations by indexes: few ids by that of names, many by that of times, which covers what is read. Both scans are bounded
 * for a tenant of any size.
 */
export function createConversationList(database: Database) {
  const selectNewest = database.prepare(
    `SELECT conversation AS id, lastSeq AS head, lastAt AS at FROM logs INDEXED BY logs_by_time
     WHERE tenant = ? AND lastSeq > 0 AND (lastAt, conversation) < (?, ?)
     ORDER BY lastAt DESC, conversation DESC LIMIT ?`,
  );
  const selectNamed = database.prepare(
    `SELECT conversation AS id, lastSeq AS head, lastAt AS at FROM logs
     WHERE tenant = ? AND lastSeq > 0 AND conversation >= ? AND conversation < ? LIMIT ?`,
  );

  // Rows are copied, because those of the database have no prototype.
  function newest(tenant: string, { at, id }: ConversationPlace, limit: number): ConversationRow[] {
    return allRows<ConversationRow>(selectNewest, tenant, at, id, limit).map((row) => ({ ...row }));
  }

  /** Null if there are too many. */
  function named(tenant: string, ranges: readonly IdRange[]): ConversationRow[] | null {
    const found = new Map<string, ConversationRow>();
    for (const { from, to } of ranges) {
      const rows = allRows<ConversationRow>(selectNamed, tenant, from, to, MOST_NAMED + 1);
      for (const row of rows) found.set(row.id, { ...row });
      if (found.size > MOST_NAMED) return null;
    }
    return [...found.values()];
  }

  return async function list(
    { tenant, limit, before = NEWEST, ranges }: ConversationsQuery,
    read: <T>(work: () => T) => Promise<T>,
  ): Promise<ConversationPage> {
    const few = ranges && (await read(() => named(tenant, ranges)));
    if (few) return { ...pageOf(few, { limit, before }), looked: few.length };
    const isIn = (id: string) => !ranges || ranges.some(({ from, to }) => id >= from && id < to);
    const rows: ConversationRow[] = [];
    let looked = few === null ? MOST_NAMED : 0;
    for (let place = before; ;) {
      const step = ranges ? STEP : limit + 1;
      const found = await read(() => newest(tenant, place, step));
      for (const row of found) {
        if (rows.length === limit) return { rows, next: place, looked };
        looked += 1;
        place = placeOf(row) ?? place;
        if (isIn(row.id)) rows.push(row);
      }
      if (found.length < step) return { rows, next: null, looked };
      if (looked >= MOST_LOOKED_AT) return { rows, next: place, looked };
      await setImmediate();
    }
  };
}
