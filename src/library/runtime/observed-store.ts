import { toTroupeError, TroupeError } from '../../base/errors.ts';
import type { Metrics } from '../../events/metrics.ts';
import type { StoreDriver } from '../../store/driver.ts';
import type { OnDamage } from '../../store/create-store.ts';
import { wrapMethods } from '../../store/wrap-methods.ts';
import { chargeWork, isCharged } from '../../base/work.ts';
import type { Clock } from '../../base/clock.ts';

/** Counts the errors of the store, and the appends that were repeated because another writer took the seq. */
export function countStoreErrors(
  driver: StoreDriver & { stats?: { clashes: number } },
  metrics: Metrics,
): StoreDriver {
  let clashes = 0;
  const counting: Parameters<typeof wrapMethods>[1] =
    (method) =>
    (...args) =>
      method(...args).catch((error: unknown) => {
        metrics.count('store_errors', { code: toTroupeError(error).code });
        throw error;
      });
  const counted = wrapMethods<StoreDriver>(driver, counting);
  const own = { inbox: wrapMethods(driver.inbox, counting), check: driver.check, close: driver.close };
  const { stats } = driver;
  if (!stats) return { ...counted, ...own };
  return {
    ...counted,
    ...own,
    async append(rows) {
      const outcomes = await counted.append(rows);
      const now = stats.clashes;
      if (now > clashes) metrics.count('append_retries', {}, now - clashes);
      clashes = now;
      return outcomes;
    },
  };
}

/** Maximum number of damaged events and of their conversations that a process knows. */
const MOST_DAMAGED = 10_000;

/** Counts each damaged event once, and warns once for each conversation. */
export function reportDamage(metrics: Metrics, onWarning: (error: unknown, where: string) => void): OnDamage {
  const known = new Set<string>();
  function isNew(key: string): boolean {
    if (known.has(key)) return false;
    if (known.size >= MOST_DAMAGED) known.clear();
    known.add(key);
    return true;
  }

  return ({ tenant, conversation }, { kind, seq, id }) => {
    if (!isNew(`${tenant}/${conversation}/${seq}`)) return;
    metrics.count('damaged_events', { damage: kind });
    if (!isNew(`${tenant}/${conversation}`)) return;
    // The reason may quote the stored text, which no log line may contain.
    const [code, what] =
      kind === 'altered'
        ? (['event_altered', 'was changed after it was stored: its content does not match its hash'] as const)
        : (['store_corrupt', 'cannot be read'] as const);
    const message = `event ${seq} of conversation ${conversation} ${what}. The conversation goes on; to check all of it: troupe doctor --verify ${conversation}`;
    onWarning(new TroupeError(code, message, { tenant, conversation, seq, id }), 'store');
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

/** Operations that every turn needs. */
const TIMED: readonly string[] = ['append', 'readEvent', 'acquire', 'compareAndSet', 'readEntry', 'swap'];

/** Reports the durations of the `TIMED` operations, in ms. */
export function timeStore(
  driver: StoreDriver,
  clock: Pick<Clock, 'monotonic'>,
  took: (ms: number) => void,
): StoreDriver {
  return wrapMethods(driver, (method, name) => {
    if (!TIMED.includes(name)) return method;
    return async (...args) => {
      const began = clock.monotonic();
      try {
        return await method(...args);
      } finally {
        took(clock.monotonic() - began);
      }
    };
  });
}
