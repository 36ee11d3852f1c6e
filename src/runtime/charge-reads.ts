import type { StoreDriver } from '../store/driver.ts';
import { chargeWork, isCharged } from '../work.ts';

/** Charges what is read to those on whose account it is, see `work.ts`. Changes nothing else. */
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
    async readRegister(key) {
      const data = await driver.readRegister(key);
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
