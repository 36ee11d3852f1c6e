import * as z from 'zod';
import { TenantId } from '../../events/index.ts';
import type { InputOf } from '../../base/input-of.ts';

const Days = z.number().positive().max(36_500);

export const RetentionSettings = z.strictObject({
  /** Days without an event after which a conversation is erased with its threads and files, as `troupe.erase` does. */
  days: Days,
  /** Days of single tenants, by their ids. Default: `days` for all. */
  tenants: z.record(TenantId, Days).optional(),
});

/** How long conversations are kept. */
export type RetentionInput = InputOf<typeof RetentionSettings>;
