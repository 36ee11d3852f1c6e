import { toTroupeError } from '../errors.ts';
import type { Metrics } from '../metrics.ts';
import type { StoreDriver } from '../store/driver.ts';

/** Counts what the store could not do, and how often an append found its place taken. Changes nothing else. */
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
    readRegister: counted((...args) => driver.readRegister(...args)),
    swap: counted((...args) => driver.swap(...args)),
    expire: counted((...args) => driver.expire(...args)),
    deleteConversation: counted((...args) => driver.deleteConversation(...args)),
    check: () => driver.check(),
    close: () => driver.close(),
  };
}
