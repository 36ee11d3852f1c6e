import { randomUUID } from 'node:crypto';
import {
  type ActorAddress,
  type Admission,
  type AdmissionCaps,
  admissionLimits,
  type AdmissionLoad,
  createAskServer,
  createHeldSlots,
  DEFAULT_SLOT_MS,
  type Entry,
  parseSlot,
  parseWish,
  retryInMs,
  slotText,
  type TenantId,
  wishText,
} from '../troupe.ts';
import { type AdmissionAsk, createAdmissionTable, providerScope, tenantScope } from './admission-table.ts';
import { createBatches } from './batches.ts';
import type { QueueDatabase } from './queue-database.ts';

export interface PostgresAdmissionOptions {
  /** Shared: `close` leaves it open. */
  database: QueueDatabase;
  caps: AdmissionCaps;
  onWarning: (error: unknown, where: string) => void;
  /** Called with the error of each failed statement. */
  onFailed?: (error: unknown) => void;
  slotMs?: number;
  /** PostgreSQL counts as unavailable after this long without an answer. */
  answerMs?: number;
  /** 0 <= n < 1. */
  random?: () => number;
}

const MOST_ASKED = 64;
const ADMITTED: Entry = { kind: 'admitted', leave: async () => {} };

/** Admission in PostgreSQL. `held-slots.ts` keeps what was granted. */
export function createPostgresAdmission(options: PostgresAdmissionOptions): Admission {
  const { database, caps, slotMs = DEFAULT_SLOT_MS, random = Math.random } = options;
  const limits = admissionLimits(caps);
  const table = createAdmissionTable(database);
  const within = createAskServer({ ...options, server: 'PostgreSQL' });
  const slots = createHeldSlots({ places: table, ask: within, slotMs });
  const batches = createBatches(async (asks: AdmissionAsk[]) => {
    const answers = await table.decide(asks);
    return new Map(asks.map((ask, at) => [ask, answers[at] ?? 0]));
  }, MOST_ASKED);
  const decide = async (ask: AdmissionAsk): Promise<number> => (await batches.add(ask)).get(ask) ?? 0;

  async function enter(address: ActorAddress, provider: string): Promise<Entry> {
    const { tenantCap } = limits;
    const providerCap = limits.providerCap(provider);
    if (tenantCap === null && providerCap === null) return ADMITTED;
    const { tenant } = address;
    const slot = slotText({ address, provider }, randomUUID());
    const scopes = [
      ...(tenantCap === null ? [] : [tenantScope(tenant)]),
      ...(providerCap === null ? [] : [providerScope(provider)]),
    ];
    const ask = { tenant, slot, slotMs, tenantCap, providerCap };
    const wish = wishText({ address, provider, for: 'slot' });
    const waitMs = await within(
      () => decide({ kind: 'slot', ask, provider, wish }),
      () => void slots.removeLeft(slot, scopes),
    );
    if (waitMs !== null && waitMs > 0) return { kind: 'full', retryInMs: retryInMs(random) };
    return { kind: 'admitted', leave: slots.hold(slot, scopes) };
  }

  async function takeCall(address: ActorAddress, provider: string): Promise<number> {
    const rate = limits.callRate(provider);
    if (!rate) return 0;
    const wish = wishText({ address, provider, for: 'call' });
    return (await within(() => decide({ kind: 'call', rate, provider, wish }))) ?? 0;
  }

  async function load(tenant: TenantId): Promise<AdmissionLoad> {
    const capped = Object.entries(caps.providers ?? {});
    const scopes = [
      ...(caps.turnsPerTenant === undefined ? [] : [tenantScope(tenant)]),
      ...capped.filter(([, { turns }]) => turns !== undefined).map(([name]) => providerScope(name)),
    ];
    // Without caps nobody is refused (C4).
    const isCapped = scopes.length > 0 || capped.length > 0;
    const found = isCapped ? await within(() => table.load(scopes)) : null;
    if (!found) return { caps, held: [], waiting: [] };
    const waiting = found.wishes.flatMap(({ text, since }) => {
      const wish = parseWish(text);
      return wish ? [{ ...wish, since }] : [];
    });
    return { caps, held: [...new Set(found.held)].flatMap((slot) => parseSlot(slot) ?? []), waiting };
  }

  return { enter, takeCall, load, close: () => slots.close() };
}
