import { TroupeError } from '../errors.ts';
import type { AdmissionCaps, ProviderCaps } from './admission.ts';
import type { CallRate } from './admission-rules.ts';

/** The caps as adapters ask for them; null where there is none. */
export interface AdmissionLimits {
  tenantCap: number | null;
  providerCap(provider: string): number | null;
  callRate(provider: string): CallRate | null;
}

export const DEFAULT_SLOT_MS = 30_000;

const RETRY_FROM_MS = 100;
const RETRY_TO_MS = 400;

/** Spread, so that those who were refused together do not come back together. */
export function retryInMs(random: () => number): number {
  return RETRY_FROM_MS + Math.floor(random() * (RETRY_TO_MS - RETRY_FROM_MS));
}

/** Throws `config_invalid`. */
export function admissionLimits(caps: AdmissionCaps): AdmissionLimits {
  const providers = new Map(Object.entries(caps.providers ?? {}));
  const tenantCap = whole('turnsPerTenant', caps.turnsPerTenant);
  const providerCaps = new Map<string, number | null>();
  const rates = new Map<string, CallRate | null>();
  for (const [name, provider] of providers) {
    providerCaps.set(name, whole(`providers.${name}.turns`, provider.turns));
    rates.set(name, callRate(name, provider));
  }
  return {
    tenantCap,
    providerCap: (provider) => providerCaps.get(provider) ?? null,
    callRate: (provider) => rates.get(provider) ?? null,
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
