import * as z from 'zod';
import { AllowList } from '../net/settings.ts';

const DAY_MS = 86_400_000;
export const DEFAULT_MAX_WEBHOOKS = 20;
export const DEFAULT_WEBHOOK_TIMEOUT_MS = 10_000;
export const DEFAULT_DISABLE_AFTER_MS = 3 * DAY_MS;

/** The `webhooks` block of a definition: where webhooks may lead, and how long they are tried. */
export const WebhookSettings = z.strictObject({
  allow: AllowList.optional(),
  /** Of one tenant. Default 20. */
  maxPerTenant: z.int().min(0).max(1_000).optional(),
  /** Of one delivery. Default 10,000 ms. */
  timeoutMs: z.int().min(100).max(60_000).optional(),
  /** A webhook that has taken nothing for so long, though there was something, is disabled. Default: 3 days. */
  disableAfterMs: z.int().min(60_000).optional(),
});
export type WebhookSettings = z.infer<typeof WebhookSettings>;
