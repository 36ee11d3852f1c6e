import { setImmediate } from 'node:timers/promises';
import { pageOf, placeOf } from '../conversation-page.ts';
import type {
  ConversationPage,
  ConversationPlace,
  ConversationRow,
  ConversationsQuery,
  IdRange,
} from '../driver.ts';
import type { Database } from './database.ts';
import { allRows } from './database.ts';

/** So few are found by their names and put in order; of more the newest are looked through. */
const MOST_NAMED = 1_000;
/** Looked through for one page. */
const MOST_LOOKED_AT = 20_000;
/** In one turn of the event loop. */
const STEP = 2_000;
/** Before any time that an event may have. */
const NEWEST: ConversationPlace = { at: Number.MAX_SAFE_INTEGER, id: '' };

/**
 * The list of conversations, by indexes that cover it. Of a few ids among many conversations the index of names is
 * asked, of many the index of times: either is bounded by what is looked at, whatever the tenant has.
 */
export function createConversationList(database: Database) {
  const selectNewest = database.prepare(
    `SELECT conversation AS id, lastSeq AS head, lastAt AS at FROM logs INDEXED BY logs_by_time
     WHERE tenant = ? AND lastSeq > 0 AND (lastAt, conversation) < (?, ?)
     ORDER BY lastAt DESC, conversation DESC LIMIT ?`,
  );
  const selectNamed = database.prepare(
    `SELECT conversation AS id, lastSeq AS head, lastAt AS at FROM logs INDEXED BY logs_by_name
     WHERE tenant = ? AND lastSeq > 0 AND conversation >= ? AND conversation < ? LIMIT ?`,
  );

  function newest(tenant: string, { at, id }: ConversationPlace, limit: number): ConversationRow[] {
    return allRows<ConversationRow>(selectNewest, tenant, at, id, limit).map(plain);
  }

  /** Null where there are too many. */
  function named(tenant: string, ranges: readonly IdRange[]): ConversationRow[] | null {
    const found = new Map<string, ConversationRow>();
    for (const { from, to } of ranges) {
      const rows = allRows<ConversationRow>(selectNamed, tenant, from, to, MOST_NAMED + 1);
      for (const row of rows) found.set(row.id, plain(row));
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

/** Rows of the database have no prototype. */
function plain({ id, head, at }: ConversationRow): ConversationRow {
  return { id, head, at };
}
