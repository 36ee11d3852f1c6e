import * as z from 'zod';
import { updateEntry, type KeyValue } from '../key-value.ts';

const Time = z.int().nonnegative();

/** How the deliveries of a webhook go, as far as the process that delivers has written it down. */
export const WebhookStatus = z.object({
  delivered: z.int().nonnegative(),
  deliveredAt: Time.nullable(),
  /** Events that the receiver has refused for good: they are not sent again. */
  refused: z.int().nonnegative(),
  lastRefused: z
    .object({ conversation: z.string(), seq: z.int(), event: z.string(), reason: z.string(), at: Time })
    .nullable(),
  /** Since when tries have failed, one after the other; null while all is well. */
  failingSince: Time.nullable(),
  /** The last of them; notes of earlier versions do not say. */
  failedAt: Time.nullable().default(null),
  lastError: z.string().nullable(),
  /** When the next try is. */
  retryAt: Time.nullable(),
  /** Conversations that were behind at the last failure. */
  behind: z.int().nonnegative(),
});
export type WebhookStatus = z.infer<typeof WebhookStatus>;

const UNTRIED: WebhookStatus = {
  delivered: 0,
  deliveredAt: null,
  refused: 0,
  lastRefused: null,
  failingSince: null,
  failedAt: null,
  lastError: null,
  retryAt: null,
  behind: 0,
};

type StatusNotes = Pick<KeyValue, 'get' | 'compareAndSet'>;

function keyOf(id: string): string {
  return `webhook-status/${id}`;
}

export async function readWebhookStatus(notes: StatusNotes, id: string): Promise<WebhookStatus> {
  return parse(await notes.get(keyOf(id)));
}

/** Several processes may write it, each what it has seen. */
export function changeWebhookStatus(
  notes: StatusNotes,
  id: string,
  apply: (status: WebhookStatus) => WebhookStatus,
): Promise<WebhookStatus> {
  return updateEntry(notes, keyOf(id), parse, apply);
}

/** Figures that cannot be read begin anew. */
function parse(text: string | null): WebhookStatus {
  if (text === null) return UNTRIED;
  try {
    return WebhookStatus.safeParse(JSON.parse(text)).data ?? UNTRIED;
  } catch {
    // Not JSON: no figures of ours.
    return UNTRIED;
  }
}
