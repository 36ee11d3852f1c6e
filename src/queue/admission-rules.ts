import { TroupeError } from '../base/errors.ts';
import {
  type AdmissionCaps,
  type ProviderCaps,
  FORGOTTEN_MS,
  MOST_REFUSED,
  type Refused,
  type SlotOf,
} from './admission.ts';
import type { Clock } from '../base/clock.ts';
import { ActorAddress, addressKey } from '../events/index.ts';
import type { AskServer } from './outage.ts';

/**
 * The decisions of admission as pure functions: state in, answer and new state out. The in-process adapter runs them. The
 * Redis adapter runs a copy in Lua, and its tests compare the two. Times are whole ms of one clock.
 *  L1  All numbers are whole, so that JavaScript and Lua agree exactly and keys store them without loss.
 *  L2  A lapsed slot (`until` <= now) does not count, even before it is removed.
 */

/** Slots with the ends of their holds. The text of a slot begins with its tenant: `<tenant>/<unique>`. */
type Held = ReadonlyMap<string, number>;

export interface SlotState {
  /** Slots of the asking tenant. */
  tenant: Held;
  /** Slots of the requested provider. */
  provider: Held;
  /** Time until which each tenant counts as asking for this provider. */
  asking: ReadonlyMap<string, number>;
}

/** A request for a slot. */
export interface SlotAsk {
  /** Id of the tenant. */
  tenant: string;
  /** The slot, see `Held`. */
  slot: string;
  /** How long it is held unless it is renewed, ms. */
  slotMs: number;
  /** Null: no cap. */
  tenantCap: number | null;
  /** Null: no cap. */
  providerCap: number | null;
}

/** How long a refused tenant counts as asking. It asks again within half a second, later if its process is busy. */
export const REFUSED_ASKS_MS = 5_000;
/** How long an admitted tenant counts as asking. One with more work asks again sooner. */
export const ADMITTED_ASKS_MS = 1_000;

/** A tenant at its own cap does not count as asking: it could not use a slot that others leave free. */
export function enterSlot(
  before: SlotState,
  ask: SlotAsk,
  now: number,
): { admitted: boolean; state: SlotState } {
  const { tenant, slot, tenantCap, providerCap } = ask;
  const own = remaining(before.tenant, now);
  const provider = remaining(before.provider, now);
  const asking = remaining(before.asking, now);
  if (tenantCap !== null && own.size >= tenantCap) {
    asking.delete(tenant);
    return { admitted: false, state: { tenant: own, provider, asking } };
  }
  const admitted = providerCap === null || mayHold(provider, asking, tenant, providerCap);
  if (providerCap !== null) {
    asking.set(tenant, now + (admitted ? ADMITTED_ASKS_MS : REFUSED_ASKS_MS));
    if (admitted) provider.set(slot, now + ask.slotMs);
  }
  if (tenantCap !== null && admitted) own.set(slot, now + ask.slotMs);
  return { admitted, state: { tenant: own, provider, asking } };
}

/**
 * Fairness between tenants (C6). A tenant's share is the cap divided by the number of asking tenants. Up to its share it
 * needs only a free slot; beyond it, all other asking tenants must have their shares.
 */
function mayHold(
  held: Held,
  asking: ReadonlyMap<string, number>,
  tenant: string,
  providerCap: number,
): boolean {
  if (held.size >= providerCap) return false;
  const others = [...asking.keys()].filter((each) => each !== tenant);
  if (others.length === 0) return true;
  const share = Math.ceil(providerCap / (others.length + 1));
  const counts = new Map<string, number>();
  for (const slot of held.keys()) {
    const holder = slot.slice(0, slot.indexOf('/'));
    counts.set(holder, (counts.get(holder) ?? 0) + 1);
  }
  const holds = (each: string) => counts.get(each) ?? 0;
  return holds(tenant) < share || others.every((each) => holds(each) >= share);
}

function remaining(all: ReadonlyMap<string, number>, now: number): Map<string, number> {
  return new Map([...all].filter(([, until]) => until > now));
}

/** `level` counts parts, `CALL` for each call, and rises by `callsPerMinute` per ms. A full bucket has `burst` calls. */
export interface CallBucket {
  /** Remaining parts of calls. */
  level: number;
  /** Time of this level, ms. */
  at: number;
}

/** Rate limit of calls. */
export interface CallRate {
  /** Calls per minute, over time. */
  callsPerMinute: number;
  /** Most calls at once, after a pause. */
  burst: number;
}

/** Number of parts of a call: the ms of a minute, so that the rise per ms is a whole number (L1). */
export const CALL = 60_000;

/** Null counts as a full bucket. A clock that goes back changes no level. */
export function takeToken(
  before: CallBucket | null,
  { callsPerMinute, burst }: CallRate,
  now: number,
): { waitMs: number; bucket: CallBucket } {
  const full = burst * CALL;
  const risen = before ? before.level + Math.max(0, now - before.at) * callsPerMinute : full;
  const level = Math.min(full, risen);
  if (level >= CALL) return { waitMs: 0, bucket: { level: level - CALL, at: now } };
  return { waitMs: Math.ceil((CALL - level) / callsPerMinute), bucket: { level, at: now } };
}

/** The caps as adapters use them; null is no cap. */
interface AdmissionLimits {
  /** Most concurrent turns of one tenant. */
  tenantCap: number | null;
  /** Most concurrent turns with this provider. */
  providerCap(provider: string): number | null;
  /** Rate of calls to this provider. */
  callRate(provider: string): CallRate | null;
}

/** How long a slot is held unless it is renewed. */
export const DEFAULT_SLOT_MS = 30_000;

const RETRY_FROM_MS = 100;
/** The longest time after which a refused caller asks again. */
export const RETRY_TO_MS = 400;

/** Random, so that callers refused together do not return together. */
export function retryInMs(random: () => number): number {
  return RETRY_FROM_MS + Math.floor(random() * (RETRY_TO_MS - RETRY_FROM_MS));
}

export function hasCaps({ turnsPerTenant, providers = {} }: AdmissionCaps): boolean {
  return turnsPerTenant !== undefined || Object.keys(providers).length > 0;
}

/** Throws `config_invalid`. */
export function admissionLimits(caps: AdmissionCaps): AdmissionLimits {
  const tenantCap = whole('turnsPerTenant', caps.turnsPerTenant);
  const providers = new Map<string, { cap: number | null; rate: CallRate | null }>();
  for (const [name, provider] of Object.entries(caps.providers ?? {})) {
    const cap = whole(`providers.${name}.turns`, provider.turns);
    providers.set(name, { cap, rate: callRate(name, provider) });
  }
  return {
    tenantCap,
    providerCap: (provider) => providers.get(provider)?.cap ?? null,
    callRate: (provider) => providers.get(provider)?.rate ?? null,
  };
}

function callRate(name: string, { callsPerMinute, burst }: ProviderCaps): CallRate | null {
  const rate = whole(`providers.${name}.callsPerMinute`, callsPerMinute);
  const atOnce = whole(`providers.${name}.burst`, burst);
  if (rate === null) return null;
  return { callsPerMinute: rate, burst: atOnce ?? Math.max(1, Math.floor(rate / 10)) };
}

function whole(name: string, value: number | undefined): number | null {
  if (value === undefined) return null;
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new TroupeError(
    'config_invalid',
    `the cap ${name} must be a whole number from 1, not ${value}; leave it out for no cap`,
    { cap: name, value },
  );
}

/** The text of a slot. It begins with its tenant (`admission-rules.ts`). */
export function slotText({ address, provider }: SlotOf, unique: string | number): string {
  return `${addressKey(address)}/${unique}/${provider}`;
}

/** Null for the slot of a release that wrote other texts. */
export function parseSlot(text: string): SlotOf | null {
  const [tenant, conversation, agent, unique, ...provider] = text.split('/');
  const address = ActorAddress.safeParse({ tenant, conversation, agent });
  if (!address.success || unique === undefined || provider.length === 0) return null;
  return { address: address.data, provider: provider.join('/') };
}

type Wish = Omit<Refused, 'since'>;

/** The text of a refused request. It is the same for every repetition by the actor. */
export function wishText({ address, provider, for: what }: Wish): string {
  return slotText({ address, provider }, what);
}

/** Null for the text of another release. */
export function parseWish(text: string): Wish | null {
  const slot = parseSlot(text);
  const what = text.split('/', 4)[3];
  return slot && (what === 'slot' || what === 'call') ? { ...slot, for: what } : null;
}

interface RefusalCache {
  /** Records an answer: 0, or how many ms to wait before asking again. */
  note(wish: Wish, retryMs: number): void;
  all(): Refused[];
}

/** A request is reported with the time of day and dropped by the monotonic clock, so that setting the clock drops none. */
export function createRefusalCache(clock: Pick<Clock, 'now' | 'monotonic'>): RefusalCache {
  const wishes = new Map<string, { refused: Refused; until: number }>();
  return {
    note(wish, retryMs) {
      if (retryMs === 0 && wishes.size === 0) return;
      const key = wishText(wish);
      const known = wishes.get(key);
      const now = clock.monotonic();
      const since = known && known.until > now ? known.refused.since : Math.floor(clock.now());
      if (retryMs === 0) wishes.delete(key);
      else wishes.set(key, { refused: { ...wish, since }, until: now + retryMs + FORGOTTEN_MS });
    },
    all() {
      const now = clock.monotonic();
      for (const [key, { until }] of wishes) if (until <= now) wishes.delete(key);
      return [...wishes.values()]
        .map(({ refused }) => refused)
        .toSorted((a, b) => a.since - b.since)
        .slice(0, MOST_REFUSED);
    },
  };
}

/** A slot and where it is held: under its tenant or its provider. */
export interface HeldPlace {
  /** Key of the tenant or of the provider. */
  scope: string;
  /** The slot. */
  member: string;
}

interface SlotPlaces {
  /** Holds these for `slotMs` from now, including missing ones. */
  hold(places: readonly HeldPlace[], slotMs: number): Promise<unknown>;
  /** Removes these. */
  remove(places: readonly HeldPlace[]): Promise<unknown>;
}

/**
 * The slots of this process.
 *  A1  `held` has the slots that were not left, each with its scopes. All are renewed every third of `slotMs`. Renewing
 *      adds missing ones, so slots that were granted while the server was unavailable, or lost with its data, count again.
 *  A2  If the server is slow, an answer may come after its slot was left. Therefore whatever adds a slot checks
 *      afterwards whether it is still held, and removes it if not.
 */
export function createHeldSlots({
  places: server,
  ask,
  slotMs,
}: {
  places: SlotPlaces;
  ask: AskServer;
  slotMs: number;
}) {
  const held = new Map<string, readonly string[]>();
  let timer: NodeJS.Timeout | null = null;
  let isRenewing = false;
  const placesOf = (slot: string, scopes: readonly string[]) =>
    scopes.map((scope) => ({ scope, member: slot }));

  async function renew(): Promise<void> {
    if (isRenewing || held.size === 0) return;
    isRenewing = true;
    const slots = [...held];
    const removeAll = () => Promise.all(slots.map(([slot, scopes]) => removeLeft(slot, scopes)));
    const places = slots.flatMap(([slot, scopes]) => placesOf(slot, scopes));
    await ask(
      () => server.hold(places, slotMs),
      () => void removeAll(),
    );
    await removeAll();
    isRenewing = false;
  }

  async function leave(slot: string): Promise<void> {
    const scopes = held.get(slot);
    if (scopes && held.delete(slot)) await removeLeft(slot, scopes);
  }

  /** Removes a slot that is no longer held. One that cannot be removed now lapses. */
  async function removeLeft(slot: string, scopes: readonly string[]): Promise<void> {
    if (!held.has(slot)) await ask(() => server.remove(placesOf(slot, scopes)));
  }

  return {
    removeLeft,
    /** Holds a slot until the returned function is called. */
    hold(slot: string, scopes: readonly string[]): () => Promise<void> {
      held.set(slot, scopes);
      timer ??= setInterval(() => void renew(), slotMs / 3).unref();
      return () => leave(slot);
    },
    async close(): Promise<void> {
      if (timer) clearInterval(timer);
      await Promise.all([...held.keys()].map(leave));
    },
  };
}
