import { toTroupeError } from '../errors.ts';
import type { Metrics } from '../metrics.ts';
import type { StoreDriver } from '../store/driver.ts';
import { chargeWork, isCharged } from '../work.ts';
import type { Clock } from '../clock.ts';

/** Counts the errors of the store, and the appends that were repeated because another writer took the seq. */
export function countStoreErrors(
  driver: StoreDriver & { stats?: { clashes: number } },
  metrics: Metrics,
): StoreDriver {
  let clashes = 0;

  function counted<A extends unknown[], T>(work: (...args: A) => Promise<T>) {
    return async (...args: A): Promise<T> => {
      try {
        return await work(...args);
      } catch (error) {
        metrics.count('store_errors', { code: toTroupeError(error).code });
        throw error;
      }
    };
  }

  return {
    append: counted(async (rows) => {
      const outcomes = await driver.append(rows);
      const now = driver.stats?.clashes ?? 0;
      if (now > clashes) metrics.count('append_retries', {}, now - clashes);
      clashes = now;
      return outcomes;
    }),
    readEvents: counted((...args) => driver.readEvents(...args)),
    readEvent: counted((...args) => driver.readEvent(...args)),
    head: counted((...args) => driver.head(...args)),
    addressed: counted((...args) => driver.addressed(...args)),
    conversations: counted((...args) => driver.conversations(...args)),
    acquire: counted((...args) => driver.acquire(...args)),
    compareAndSet: counted((...args) => driver.compareAndSet(...args)),
    requestCancel: counted((...args) => driver.requestCancel(...args)),
    park: counted((...args) => driver.park(...args)),
    readActor: counted((...args) => driver.readActor(...args)),
    listActors: counted((...args) => driver.listActors(...args)),
    due: counted((...args) => driver.due(...args)),
    putOnce: counted((...args) => driver.putOnce(...args)),
    readEntry: counted((...args) => driver.readEntry(...args)),
    swap: counted((...args) => driver.swap(...args)),
    expire: counted((...args) => driver.expire(...args)),
    deleteConversation: counted((...args) => driver.deleteConversation(...args)),
    check: () => driver.check(),
    close: () => driver.close(),
  };
}

/** Charges reads to the account of the request that makes them; see `work.ts`. */
export function chargeReads(driver: StoreDriver): StoreDriver {
  return {
    ...driver,
    async readEvents(query) {
      const rows = await driver.readEvents(query);
      await charged(rows);
      return rows;
    },
    async readEvent(query) {
      const row = await driver.readEvent(query);
      await charged(row ? [row] : []);
      return row;
    },
    async conversations(query) {
      const page = await driver.conversations(query);
      await chargeWork(page.looked, 0);
      return page;
    },
    async addressed(query) {
      const seqs = await driver.addressed(query);
      await chargeWork(seqs.length, 0);
      return seqs;
    },
    async listActors(query) {
      const rows = await driver.listActors(query);
      await charged(rows);
      return rows;
    },
    async readEntry(key) {
      const data = await driver.readEntry(key);
      await charged(data === null ? [] : [{ data }]);
      return data;
    },
  };
}

function charged(rows: readonly { data: string }[]): Promise<void> | undefined {
  if (rows.length === 0 || !isCharged()) return undefined;
  return chargeWork(
    rows.length,
    rows.reduce((sum, { data }) => sum + data.length, 0),
  );
}

/** Reports how long the operations take that every turn needs, in ms. */
export function timeStore(
  driver: StoreDriver,
  clock: Pick<Clock, 'monotonic'>,
  took: (ms: number) => void,
): StoreDriver {
  function timed<A extends unknown[], T>(work: (...args: A) => Promise<T>) {
    return async (...args: A): Promise<T> => {
      const began = clock.monotonic();
      try {
        return await work(...args);
      } finally {
        took(clock.monotonic() - began);
      }
    };
  }

  return {
    ...driver,
    append: timed((...args) => driver.append(...args)),
    readEvent: timed((...args) => driver.readEvent(...args)),
    acquire: timed((...args) => driver.acquire(...args)),
    compareAndSet: timed((...args) => driver.compareAndSet(...args)),
    readEntry: timed((...args) => driver.readEntry(...args)),
    swap: timed((...args) => driver.swap(...args)),
  };
}
