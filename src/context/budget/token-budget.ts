import { DEFAULT_WINDOW } from './model-windows.ts';

/** Relief begins when a prompt takes this share of what is available. */
export const TRIGGER = 0.8;
/** From here on people are warned. */
export const WARNING = 0.65;
/** What relief brings a prompt down to. */
export const TARGET = 0.55;
/** The same after a provider refused the request: our numbers were wrong. */
export const TARGET_AFTER_OVERFLOW = 0.4;
/** After a compaction the estimate must be below this share of the trigger, or it was no progress. */
export const PROGRESS = 0.7;
/** What providers take at most, as UTF-8. */
export const MAX_REQUEST_BYTES = 32 * 1_024 * 1_024;

export interface TokenBudget {
  window: number;
  /** Kept free for the answer. */
  reserved: number;
  /** For everything that is sent, tools included. */
  available: number;
}

/** At least half of the window is for the prompt, whatever is asked for the answer. */
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

export interface Usage {
  level: 'normal' | 'warning' | 'critical';
  /** Of what is available, rounded down: 80 is shown only when relief is due. */
  percent: number;
}

export function usageLevel(tokens: number, available: number): Usage {
  const share = available > 0 ? Math.max(0, tokens) / available : Number.POSITIVE_INFINITY;
  const level = share >= TRIGGER ? 'critical' : share >= WARNING ? 'warning' : 'normal';
  return { level, percent: Number.isFinite(share) ? Math.floor(share * 100) : 100 };
}
