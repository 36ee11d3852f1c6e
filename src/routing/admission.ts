import type { ActorAddress, TenantId } from '../events/index.ts';

/**
 * Who may work now: caps on turns at once, per tenant and per provider, over all processes, and the rate of calls to a
 * provider. Proved by `testing/admission-conformance.ts`:
 *  C1  At most as many slots of a tenant or a provider are held as its cap says, over all processes.
 *  C2  A slot that its holder neither renews nor leaves is free after `slotMs`: a dead process blocks nobody for longer.
 *  C3  Calls to a provider never exceed `burst` at once and `callsPerMinute` over time.
 *  C4  Without caps nothing is asked of anybody: no round trip.
 *  C5  If the service behind it is away, work goes on: caps protect budgets and vendors, never correctness.
 */
export interface Admission {
  /** A slot for one activation, or when to ask again. */
  enter(address: ActorAddress, provider: string): Promise<Entry>;
  /** Takes a token for one model call: 0, or how many ms to wait before asking again. */
  takeCall(tenant: TenantId, provider: string): Promise<number>;
  close(): Promise<void>;
}

export type Entry = { kind: 'admitted'; leave(): Promise<void> } | { kind: 'full'; retryInMs: number };

export interface AdmissionCaps {
  /** Turns at once of one tenant. */
  turnsPerTenant?: number | undefined;
  providers?: Record<string, ProviderCaps> | undefined;
}

export interface ProviderCaps {
  /** Turns at once with this provider. */
  turns?: number | undefined;
  /** Model calls in a minute. */
  callsPerMinute?: number | undefined;
  /** Calls that may come at once after a pause; default a tenth of `callsPerMinute`, at least 1. */
  burst?: number | undefined;
}
