import { policyOf } from '../base/errors.ts';
import type { ModelFailure } from './provider.ts';

const FIRST_MS = 500;
const LIMIT_MS = 30_000;
/** Longest pause while a server is away: short, so that its return is noticed soon. */
const AWAY_LIMIT_MS = 15_000;
const RETRY_AFTER_LIMIT_MS = 600_000;

/**
 * Delay before the next try; null if another try cannot help. `tries` counts the calls made so far, from 1. Half of
 * the delay is random, even after a vendor's retry-after: agents that were limited together must not return together.
 */
export function backoffMs(failure: ModelFailure, tries: number, random: () => number): number | null {
  if (policyOf(failure.code) !== 'retry') return null;
  const half =
    Math.min(failure.isAway ? AWAY_LIMIT_MS : LIMIT_MS, FIRST_MS * 2 ** Math.max(0, tries - 1)) / 2;
  const floor = Math.max(half, Math.min(failure.retryAfterMs ?? 0, RETRY_AFTER_LIMIT_MS));
  return Math.round(floor + random() * half);
}
