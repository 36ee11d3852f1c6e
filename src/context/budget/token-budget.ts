import { DEFAULT_WINDOW } from './model-windows.ts';

/** Compaction begins at this share of the available tokens. */
export const TRIGGER = 0.8;
/** A prompt warns from this share on. */
export const WARNING = 0.65;
/** The share that a compaction aims at. */
export const TARGET = 0.55;
/** The same after a provider refused the request, which proves our count wrong. */
export const TARGET_AFTER_OVERFLOW = 0.4;
/** A compaction makes progress if the estimate falls below this share of the trigger. */
export const PROGRESS = 0.7;
/** The largest request that providers accept, in UTF-8. */
export const MAX_REQUEST_BYTES = 32 * 1_024 * 1_024;

interface TokenBudget {
  window: number;
  /** Reserved for the answer. */
  reserved: number;
  /** Available for everything that is sent, tools included. */
  available: number;
}

/** At least half of the window is for the prompt, however long an answer is requested. */
export function budgetOf({
  window,
  maxOutputTokens,
}: {
  window: number;
  maxOutputTokens: number;
}): TokenBudget {
  const whole = Number.isFinite(window) && window >= 2 ? Math.floor(window) : DEFAULT_WINDOW;
  const asked = Number.isNaN(maxOutputTokens) ? 0 : Math.ceil(Math.max(0, maxOutputTokens));
  const reserved = Math.min(asked, Math.floor(whole / 2));
  return { window: whole, reserved, available: whole - reserved };
}

interface Usage {
  level: 'normal' | 'warning' | 'critical';
  /** Used percentage of the available tokens, rounded down: 80 appears only when compaction is due. */
  percent: number;
}

export function usageLevel(tokens: number, available: number): Usage {
  const share = available > 0 ? Math.max(0, tokens) / available : Number.POSITIVE_INFINITY;
  const level = share >= TRIGGER ? 'critical' : share >= WARNING ? 'warning' : 'normal';
  return { level, percent: Number.isFinite(share) ? Math.floor(share * 100) : 100 };
}
