import { type ActorAddress, addressKey } from '../../events/index.ts';

/** An actor that found no place under the caps, times in ms since the epoch. */
export interface SlotRefusal {
  address: ActorAddress;
  provider: string;
  since: number;
  last: number;
}

/** Waiting actors ask again within half a second, later if the process is busy; one that asks no more was served elsewhere. */
const FORGOTTEN_MS = 10_000;
const MOST_WAITS = 10_000;

/** The actors that this process could not begin because the caps of concurrent turns were reached. */
export interface SlotWaits {
  refused(address: ActorAddress, provider: string, now: number): void;
  admitted(address: ActorAddress): void;
  all(now: number): SlotRefusal[];
}

export function createSlotWaits(): SlotWaits {
  const waits = new Map<string, SlotRefusal>();
  return {
    refused(address, provider, now) {
      const key = addressKey(address);
      const known = waits.get(key);
      const since = known && now - known.last < FORGOTTEN_MS ? known.since : now;
      waits.delete(key);
      waits.set(key, { address, provider, since, last: now });
      const [oldest] = waits.keys();
      if (waits.size > MOST_WAITS && oldest !== undefined) waits.delete(oldest);
    },
    admitted(address) {
      if (waits.size > 0) waits.delete(addressKey(address));
    },
    all: (now) => [...waits.values()].filter(({ last }) => now - last < FORGOTTEN_MS),
  };
}
