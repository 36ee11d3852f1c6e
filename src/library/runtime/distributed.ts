import { toTroupeError, TroupeError } from '../../base/errors.ts';
import { createStorePace } from '../../queue/fair-share.ts';
import { slicesOf } from '../../base/slices.ts';
import { createStore } from '../../store/create-store.ts';
import type { StoreDriver } from '../../store/driver.ts';
import { chargeReads, countStoreErrors, reportDamage, timeStore } from './observed-store.ts';
import type { DatabaseOptions } from './open-database.ts';
import type { QueueServer } from '../../queue/queue-server.ts';
import type { ServiceOptions, Services } from './services.ts';

export interface DistributedServers {
  openDriver: (options: DatabaseOptions) => Promise<StoreDriver>;
  queue: QueueServer;
}

/** More turns than a process runs at once, so that the store's pace starts unlimited. */
const MOST_AT_ONCE = 1_024;
/** How far sweeps look back, ms: the log may be very large. See P2 of the sweeper. */
const SWEEP_WINDOW_MS = 600_000;

/**
 * Opens one process of many. The database holds the data; the queue holds only what speeds it up. Both servers are checked
 * before anything else is opened. Throws `config_invalid`, `store_unavailable`, `queue_unavailable`, `server_unsuitable`,
 * `store_newer`.
 */
export async function openDistributed(
  { openDriver, queue: server }: DistributedServers,
  options: ServiceOptions,
): Promise<Services> {
  const { clock, metrics, onWarning } = options;
  const [opened, checked] = await Promise.allSettled([
    openDriver({ clock, onWarning }),
    server.check({ onWarning }),
  ]);
  if (opened.status === 'rejected' || checked.status === 'rejected') {
    if (opened.status === 'fulfilled') await opened.value.close();
    throw both(opened, checked);
  }
  const pace = createStorePace(MOST_AT_ONCE, clock);
  const driver = timeStore(countStoreErrors(opened.value, metrics), clock, (ms) => pace.took(ms));
  const queue = await openBeside(driver, () => server.open({ ...options, pace }));
  return {
    store: createStore(chargeReads(driver), slicesOf(clock), reportDamage(metrics, onWarning)),
    router: queue.router,
    broadcast: queue.broadcast,
    admission: queue.admission,
    limits: { soleOwner: false, sweepWindowMs: SWEEP_WINDOW_MS },
    async close() {
      await queue.close();
      await driver.close();
    },
  };
}

/** Closes the store if the queue cannot be opened. */
async function openBeside<T>(driver: StoreDriver, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    await driver.close();
    throw error;
  }
}

/** Reports both failures at once, so that the operator can fix both. */
function both(...results: readonly PromiseSettledResult<unknown>[]): unknown {
  const errors = results.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []));
  const [first, second] = errors.map(toTroupeError);
  if (!first || !second) return errors[0];
  return new TroupeError(first.code, `${first.message}; and ${second.message}`, first.data, { cause: first });
}
