import type { Clock } from '../base/clock.ts';
import type { ActorAddress } from '../events/index.ts';
import type { Admission, AdmissionCaps, AdmissionLoad, Entry, SlotOf } from './admission.ts';
import {
  createRefusalCache,
  parseSlot,
  slotText,
  admissionLimits,
  type CallBucket,
  DEFAULT_SLOT_MS,
  enterSlot,
  hasCaps,
  retryInMs,
  takeToken,
} from './admission-rules.ts';

interface InProcessAdmissionOptions {
  caps: AdmissionCaps;
  clock: Clock;
  slotMs?: number;
  /** 0 <= n < 1. */
  random?: () => number;
}

/**
 * State shared by the members of one process: an embedded troupe has one member, tests have several.
 *
 * Owns: the slots and buckets of one process, which die with it.
 *  I1  Slots of a living member do not lapse: members of one process are never paused alone, so nothing is renewed. When
 *      a member dies, its slots lapse after `slotMs` (C2).
 *  I2  A tenant without slots takes no memory, because the number of tenants is not limited.
 */
export function createAdmissionHub(options: InProcessAdmissionOptions) {
  const { clock, slotMs = DEFAULT_SLOT_MS, random = Math.random } = options;
  const limits = admissionLimits(options.caps);
  const tenants = new Map<string, ReadonlyMap<string, number>>();
  const providers = new Map<string, ReadonlyMap<string, number>>();
  const asking = new Map<string, ReadonlyMap<string, number>>();
  const buckets = new Map<string, CallBucket>();
  const refusals = createRefusalCache(clock);
  let entered = 0;
  const now = () => Math.floor(clock.monotonic());

  function holdUntil(slot: HeldSlot, until: number | null): void {
    for (const [scopes, key] of [
      [tenants, slot.tenant],
      [providers, slot.provider],
    ] as const) {
      const held = new Map(scopes.get(key));
      if (!held.has(slot.id)) continue;
      if (until === null) held.delete(slot.id);
      else held.set(slot.id, until);
      keep(scopes, key, held);
    }
  }

  /** After `died` aborts, the member renews nothing and leaves no slots, as if its process had been killed. */
  function join(died?: AbortSignal): Admission {
    const mine = new Set<HeldSlot>();
    died?.addEventListener('abort', () => {
      for (const slot of mine) holdUntil(slot, now() + slotMs);
      mine.clear();
    });

    async function leave(slot: HeldSlot): Promise<void> {
      if (mine.delete(slot)) holdUntil(slot, null);
    }

    async function enter(address: ActorAddress, provider: string): Promise<Entry> {
      const { tenant } = address;
      const { tenantCap } = limits;
      const providerCap = limits.providerCap(provider);
      if (tenantCap === null && providerCap === null) return ADMITTED;
      const slot: HeldSlot = { id: slotText({ address, provider }, ++entered), tenant, provider };
      const before = {
        tenant: tenants.get(tenant) ?? NOTHING,
        provider: providers.get(provider) ?? NOTHING,
        asking: asking.get(provider) ?? NOTHING,
      };
      const ask = { tenant, slot: slot.id, slotMs: Infinity, tenantCap, providerCap };
      const { admitted, state } = enterSlot(before, ask, now());
      keep(tenants, tenant, state.tenant);
      keep(providers, provider, state.provider);
      keep(asking, provider, state.asking);
      const retryMs = admitted ? 0 : retryInMs(random);
      refusals.note({ address, provider, for: 'slot' }, retryMs);
      if (!admitted) return { kind: 'full', retryInMs: retryMs };
      mine.add(slot);
      return { kind: 'admitted', leave: () => leave(slot) };
    }

    async function takeCall(address: ActorAddress, provider: string): Promise<number> {
      const rate = limits.callRate(provider);
      if (!rate) return 0;
      const { waitMs, bucket } = takeToken(buckets.get(provider) ?? null, rate, now());
      buckets.set(provider, bucket);
      refusals.note({ address, provider, for: 'call' }, waitMs);
      return waitMs;
    }

    const load = async (tenant: string): Promise<AdmissionLoad> => ({
      caps: options.caps,
      held: slotsIn([tenants.get(tenant), ...providers.values()], now()),
      waiting: refusals.all(),
    });

    return { enter, takeCall, load, close: async () => void (await Promise.all([...mine].map(leave))) };
  }

  return { join };
}

export function createInProcessAdmission(options: InProcessAdmissionOptions): Admission {
  return hasCaps(options.caps) ? createAdmissionHub(options).join() : createOpenAdmission();
}

interface HeldSlot {
  id: string;
  tenant: string;
  provider: string;
}

function slotsIn(sets: readonly (ReadonlyMap<string, number> | undefined)[], now: number): SlotOf[] {
  const all = sets.flatMap((held) => [...(held ?? [])]).filter(([, until]) => until > now);
  return [...new Set(all.map(([id]) => id))].flatMap((id) => parseSlot(id) ?? []);
}

const NOTHING: ReadonlyMap<string, number> = new Map();

function keep<V extends ReadonlyMap<string, number>>(scopes: Map<string, V>, key: string, value: V): void {
  if (value.size > 0) scopes.set(key, value);
  else scopes.delete(key);
}

const ADMITTED: Entry = { kind: 'admitted', leave: async () => {} };

/** Admission without caps (C4). */
export function createOpenAdmission(): Admission {
  return {
    enter: async () => ADMITTED,
    takeCall: async () => 0,
    load: async () => ({ caps: {}, held: [], waiting: [] }),
    close: async () => {},
  };
}
