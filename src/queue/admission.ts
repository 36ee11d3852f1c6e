import type { ActorAddress, TenantId } from '../events/index.ts';

/**
 * Caps on concurrent turns, per tenant and per provider, across all processes, and on the rate of calls to a
 * provider. Proved by `testing/admission-conformance.ts`:
 *  C1  At most as many slots of a tenant or a provider are held as its cap says, over all processes.
 *  C2  A slot that its holder neither renews nor leaves is free after `slotMs`: a dead process blocks nobody for longer.
 *  C3  Calls to a provider never exceed `burst` at once and `callsPerMinute` over time.
 *  C4  Without caps nothing is asked of anybody: no round trip.
 *  C5  If the service behind it is unavailable, work continues: caps protect budgets and vendors, not correctness. A slot
 *      given meanwhile is counted once the service is back, above the cap if need be.
 *  C6  Where several tenants ask for one provider, none takes more than its share while another that has less asks.
 * The decisions are in `admission-rules.ts`.
 */
export interface Admission {
  /** Returns a slot for one activation, or when to ask again. Never throws. */
  enter(address: ActorAddress, provider: string): Promise<Entry>;
  /** Takes a token for one model call: 0, or how many ms to wait before asking again. Never throws. */
  takeCall(tenant: TenantId, provider: string): Promise<number>;
  /** Releases all held slots. */
  close(): Promise<void>;
}

/** `leave` never throws; repeating it has no effect. */
export type Entry = { kind: 'admitted'; leave(): Promise<void> } | { kind: 'full'; retryInMs: number };

/** Whole numbers from 1. */
export interface AdmissionCaps {
  /** Concurrent turns of one tenant. */
  turnsPerTenant?: number | undefined;
  /** By provider name. */
  providers?: Record<string, ProviderCaps> | undefined;
}

export interface ProviderCaps {
  /** Concurrent turns with this provider. */
  turns?: number | undefined;
  /** Model calls per minute. */
  callsPerMinute?: number | undefined;
  /** Calls that may come at once after a pause; default a tenth of `callsPerMinute`, at least 1. */
  burst?: number | undefined;
}
