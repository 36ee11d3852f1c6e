import type { ActorAddress, TenantId } from '../events/index.ts';

/**
 * Caps on concurrent turns, per tenant and per provider over all processes, and on the rate of calls to a provider. Its
 * decisions are in `admission-rules.ts`. Tested by `testing/admission-conformance.ts`:
 *  C1  The held slots of a tenant or a provider never exceed its cap, over all processes.
 *  C2  A slot that is neither renewed nor left is free after `slotMs`, so a dead process does not block others for longer.
 *  C3  Calls to a provider never exceed `burst` at once and `callsPerMinute` over time.
 *  C4  Without caps there is no round trip.
 *  C5  If the service behind it is unavailable, work continues: caps protect budgets and vendors, not correctness. A slot
 *      granted meanwhile counts once the service is back, even above the cap.
 *  C6  While several tenants ask for one provider, none takes more than its share as long as another has less.
 *  C7  `load` has the held slots and the refused actors of all processes. An actor is listed from its first refusal until
 *      it is admitted. One that does not ask again is dropped `FORGOTTEN_MS` after it should have.
 */
export interface Admission {
  /** Returns a slot for one activation, or when to ask again. Never throws. */
  enter(address: ActorAddress, provider: string): Promise<Entry>;
  /** Takes a token for one model call: 0, or how many ms to wait before asking again. Never throws. */
  takeCall(address: ActorAddress, provider: string): Promise<number>;
  /** Held slots of the tenant and of capped providers, and waiting actors. Never throws; empty while unavailable. */
  load(tenant: TenantId): Promise<AdmissionLoad>;
  /** Leaves all held slots. */
  close(): Promise<void>;
}

/** `leave` never throws; repeating it has no effect. */
export type Entry = { kind: 'admitted'; leave(): Promise<void> } | { kind: 'full'; retryInMs: number };

/** Slots and refusals of all processes. */
export interface AdmissionLoad {
  /** The caps in force. */
  caps: AdmissionCaps;
  /** Held slots. */
  held: SlotOf[];
  /** The longest first, at most `MOST_REFUSED`. */
  waiting: Refused[];
}

/** A held or requested slot. */
export interface SlotOf {
  /** The actor. */
  address: ActorAddress;
  /** Name of the provider. */
  provider: string;
}

/** An actor that waits. */
export interface Refused extends SlotOf {
  /** A slot, or a call within the provider's rate. */
  for: 'slot' | 'call';
  /** Its first refusal, ms since the epoch. */
  since: number;
}

/** Most waiting actors that `load` returns. */
export const MOST_REFUSED = 5_000;
/** Time after its next attempt is due at which a waiting actor is dropped: another process serves it, or none does. */
export const FORGOTTEN_MS = 10_000;

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
  /** Calls allowed at once after a pause; default a tenth of `callsPerMinute`, at least 1. */
  burst?: number | undefined;
}
