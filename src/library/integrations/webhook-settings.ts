import * as z from 'zod';
import type { InputOf } from '../../base/input-of.ts';
import { AllowList } from '../../base/net/settings.ts';

const DAY_MS = 86_400_000;
export const DEFAULT_MAX_WEBHOOKS = 20;
export const DEFAULT_WEBHOOK_TIMEOUT_MS = 10_000;
export const DEFAULT_DISABLE_AFTER_MS = 3 * DAY_MS;

export const WebhookSettings = z.strictObject({
  /** The only hosts that may be reached: `example.org`, `*.example.org`, `host:port`, an IP address, a range, `*`. Default `['*']`. */
  allow: AllowList.optional(),
});
/** The `webhooks` block of a definition. */
interface WebhookInput extends InputOf<typeof WebhookSettings> {}

export interface WebhookSettings extends WebhookInput {
  /** Most webhooks of one tenant. Default 20. */
  maxPerTenant?: number | undefined;
  /** Longest delivery, ms. Default 10,000. */
  timeoutMs?: number | undefined;
  /** A webhook whose deliveries fail for this long is disabled, ms. Default 3 days. */
  disableAfterMs?: number | undefined;
}
