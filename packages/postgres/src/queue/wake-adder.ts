import { type ActorAddress, addressKey, type Clock, type TenantId } from '../troupe.ts';
import { createBatches } from './batches.ts';
import type { WakeTable } from './wake-table.ts';

const MOST_ADDED = 256;
const RECOUNT_MS = 1_000;
/** The count is read again after this part of the bound was added here. */
const PART = 16;
const MAX_TENANTS = 10_000;

export interface WakeAdderDeps {
  table: WakeTable;
  /** Told to other processes with the wakes. */
  process: string;
  /** Maximum number of waiting actors per tenant. */
  mostWaiting: number;
  clock: Pick<Clock, 'monotonic'>;
}

/** Adds wakes: those that come while a statement is under way are added together. */
export function createWakeAdder({ table, process, mostWaiting, clock }: WakeAdderDeps) {
  const count = (tenant: TenantId) => table.backlog(tenant, mostWaiting);
  const bound = createBacklogBound({ most: mostWaiting, count, clock });
  return createBatches(async (addresses: ActorAddress[]): Promise<void> => {
    const distinct = new Map(addresses.map((address) => [addressKey(address), address]));
    const admitted: ActorAddress[] = [];
    for (const address of distinct.values()) if (await bound.admits(address.tenant)) admitted.push(address);
    if (admitted.length > 0) await table.add(admitted, process);
  }, MOST_ADDED);
}

interface Size {
  counted: number;
  at: number;
  added: number;
}

/**
 * Bounds the waiting actors of a tenant (R8). A count is an index scan, so it is read once for many wakes; processes that
 * add at the same time exceed the bound by a part of it.
 */
function createBacklogBound(options: {
  most: number;
  count: (tenant: TenantId) => Promise<number>;
  clock: Pick<Clock, 'monotonic'>;
}) {
  const { most, count, clock } = options;
  const sizes = new Map<TenantId, Size>();
  return {
    /** Whether one more may wait. */
    async admits(tenant: TenantId): Promise<boolean> {
      if (sizes.size >= MAX_TENANTS) sizes.clear();
      const size = sizes.get(tenant) ?? { counted: 0, at: Number.NEGATIVE_INFINITY, added: 0 };
      sizes.set(tenant, size);
      size.added += 1;
      const isDue = size.added >= most / PART || size.counted + size.added > most;
      if (isDue && clock.monotonic() - size.at >= RECOUNT_MS) {
        size.at = clock.monotonic();
        size.counted = await count(tenant);
        size.added = 1;
      }
      return size.counted + size.added <= most;
    },
  };
}
