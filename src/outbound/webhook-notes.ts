import * as z from 'zod';
import { updateEntry, type KeyValue } from '../key-value.ts';
import { Webhook } from './webhook.ts';

type WebhookNotes = Pick<KeyValue, 'get' | 'compareAndSet'>;

/** All webhooks of a tenant: there are few. */
const KEY = 'webhooks';
const Webhooks = z.array(Webhook);

/** The oldest first. */
export async function readWebhooks(notes: WebhookNotes): Promise<Webhook[]> {
  return parse(await notes.get(KEY));
}

export async function readWebhook(notes: WebhookNotes, id: string): Promise<Webhook | null> {
  return (await readWebhooks(notes)).find((webhook) => webhook.id === id) ?? null;
}

/** `apply` may be called several times, and returns null to leave them. */
export function changeWebhooks(
  notes: WebhookNotes,
  apply: (webhooks: Webhook[]) => Webhook[] | null,
): Promise<Webhook[]> {
  return updateEntry(notes, KEY, parse, apply);
}

/** Returns it as it is afterwards; null where there is none. */
export async function changeWebhook(
  notes: WebhookNotes,
  id: string,
  apply: (webhook: Webhook) => Webhook | null,
): Promise<Webhook | null> {
  const webhooks = await changeWebhooks(notes, (all) => {
    const changed = all.map((each) => (each.id === id ? apply(each) : each));
    return changed.includes(null) ? null : changed.filter((each) => each !== null);
  });
  return webhooks.find((webhook) => webhook.id === id) ?? null;
}

/** What cannot be read is told, and not taken for none: the next change would remove all. */
function parse(text: string | null): Webhook[] {
  return text === null ? [] : Webhooks.parse(JSON.parse(text));
}
