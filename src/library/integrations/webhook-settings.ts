import * as z from 'zod';
import { AllowList } from '../../base/net/settings.ts';

const DAY_MS = 86_400_000;
export const DEFAULT_MAX_WEBHOOKS = 20;
export const DEFAULT_WEBHOOK_TIMEOUT_MS = 10_000;
export const DEFAULT_DISABLE_AFTER_MS = 3 * DAY_MS;

export const WebhookSettings = z.strictObject({
  allow: AllowList.optional(),
  maxPerTenant: z.int().min(0).max(1_000).optional(),
  timeoutMs: z.int().min(100).max(60_000).optional(),
  disableAfterMs: z.int().min(60_000).optional(),
});
/** The `webhooks` block of a definition: allowed addresses, and how long deliveries are tried. */
export interface WebhookSettings {
  /** The only hosts that may be reached: `example.org`, `*.example.org`, `host:port`, an IP address, a range, `*`. Default `['*']`. */
  allow?: readonly string[] | undefined;
  /** Most webhooks of one tenant. Default 20. */
  maxPerTenant?: number | undefined;
  /** Longest delivery, ms. Default 10,000. */
  timeoutMs?: number | undefined;
  /** A webhook whose deliveries fail for this long is disabled, ms. Default 3 days. */
  disableAfterMs?: number | undefined;
}
