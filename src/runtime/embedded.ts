import { createInProcessAdmission } from '../queue/in-process-admission.ts';
import { createBroadcastHub } from '../queue/in-process-broadcast.ts';
import { createInProcessRouter } from '../queue/in-process.ts';
import { createStore } from '../store/create-store.ts';
import { lockDataDir } from '../store/sqlite/data-lock.ts';
import { openSqliteDriver } from '../store/sqlite/sqlite-driver.ts';
import { slicesOf } from '../slices.ts';
import { chargeReads, countStoreErrors } from './observed-store.ts';
import type { ServiceOptions, Services } from './services.ts';

/** One process on a directory of its own, or in memory. Throws `data_busy`, `data_unwritable`, `store_corrupt`, `store_newer`. */
export async function openEmbedded(
  data: string,
  { clock, caps, mostWaiting, metrics, onWarning }: ServiceOptions,
): Promise<Services> {
  const lock = data === ':memory:' ? null : lockDataDir(data);
  if (lock?.exposed) onWarning(lock.exposed, 'data');
  try {
    const driver = await openSqliteDriver({ path: lock?.paths.database ?? ':memory:', onWarning });
    const store = createStore(chargeReads(countStoreErrors(driver, metrics)), slicesOf(clock));
    return {
      store,
      router: createInProcessRouter({ clock, metrics, mostWaiting }),
      broadcast: createBroadcastHub().join(onWarning),
      admission: createInProcessAdmission({ caps, clock }),
      limits: { soleOwner: true },
      async close() {
        await store.close();
        lock?.release();
      },
    };
  } catch (error) {
    lock?.release();
    throw error;
  }
}
