import { createHash } from 'node:crypto';
import type { Event } from '../events/index.ts';
import type { KeyValue } from '../key-value.ts';
import { type Follower, RetryAfter } from './follower.ts';
import { type Answer, type PostParts, postWebhook } from './post-webhook.ts';
import { wantsConversation, wantsKind, type Webhook } from './webhook.ts';
import { changeWebhook, readWebhook } from './webhook-notes.ts';
import { DEFAULT_DISABLE_AFTER_MS } from './webhook-settings.ts';
import { StatusKeeper } from './status-keeper.ts';

export interface WebhookFollowerParts extends PostParts {
  notes: KeyValue;
  tenant: string;
  disableAfterMs?: number | undefined;
  onWarning: (error: unknown, where: string) => void;
  /** It was disabled here. */
  onDisabled: () => void;
  onAnswer: (outcome: Answer['outcome']) => void;
}

export interface WebhookFollower extends Follower {
  /** As it is stored by now. */
  update(webhook: Webhook): void;
  /** Writes down what was counted. */
  flush(): Promise<void>;
}

/** After so many tries an event that the receiver does not want is passed over. */
const MAX_REFUSALS = 5;

/**
 * Sends events of a tenant to one webhook.
 *  W1  2xx: taken. 410: the webhook is disabled. Other 4xx: refused, and after 5 tries passed over, counted and noted. All
 *      else is tried again with the pauses of the follower, or after what `Retry-After` says.
 *  W2  Where tries have failed for `disableAfterMs`, with none taken in between, the webhook is disabled. Time in which
 *      nothing was tried does not count. Its cursors stay: enabled again, it goes on with the event at which it stopped.
 *  W3  A try after a failure takes the webhook as it is stored: its secret may have been changed by another process.
 */
export function createWebhookFollower(first: Webhook, parts: WebhookFollowerParts): WebhookFollower {
  const { notes, tenant, clock, disableAfterMs = DEFAULT_DISABLE_AFTER_MS, onWarning } = parts;
  const { id } = first;
  let webhook = first;
  /** Tries of those that were not taken yet; there are no more of them than conversations at once. */
  const refusals = new Map<string, number>();
  let isFailing = false;
  const status = new StatusKeeper(notes, id, clock, onWarning);

  async function disable(reason: string): Promise<never> {
    const at = clock.now();
    await changeWebhook(notes, id, (stored) => ({ ...stored, disabledAt: at, reason }));
    parts.onAnswer('gone');
    onWarning(new Error(`webhook ${id} is disabled: ${reason}`), `webhook/${id}`);
    parts.onDisabled();
    throw new Error(`it is disabled: ${reason}`);
  }

  async function fail(why: string, retryAfterMs: number | null): Promise<never> {
    isFailing = true;
    const since = await status.failed(why);
    if (clock.now() - since >= disableAfterMs) {
      await disable(`nothing was taken since ${new Date(since).toISOString()}; at last ${why}`);
    }
    throw retryAfterMs === null ? new Error(why) : new RetryAfter(retryAfterMs, why);
  }

  async function deliver(event: Event, signal: AbortSignal): Promise<void> {
    if (isFailing) webhook = (await readWebhook(notes, id)) ?? webhook;
    if (webhook.disabledAt !== undefined) throw new Error(`it is disabled: ${webhook.reason ?? ''}`);
    const payload = { type: event.kind, tenant, conversation: event.conversation, event };
    const message = { id: messageId(webhook, event), payload };
    const answer = await postWebhook(webhook, message, parts, signal);
    if (answer.outcome === 'gone') return disable(answer.why);
    parts.onAnswer(answer.outcome);
    if (answer.outcome === 'failed') return fail(answer.why, answer.retryAfterMs);
    if (answer.outcome === 'refused') {
      const tries = (refusals.get(message.id) ?? 0) + 1;
      refusals.set(message.id, tries);
      if (tries < MAX_REFUSALS) return fail(answer.why, null);
      refusals.delete(message.id);
      return status.refused(event, answer.why);
    }
    isFailing = false;
    refusals.delete(message.id);
    await status.delivered();
  }

  return {
    name: `webhook/${id}`,
    since: first.createdAt,
    wants: (conversation) => wantsConversation(first, conversation),
    cares: (event) => wantsKind(first, event),
    deliver,
    onFailed: (failure) => void status.waits(failure),
    update: (stored) => {
      webhook = stored;
    },
    flush: () => status.flush(),
  };
}

/** The same for each try of an event, and for no other event, also if a conversation is deleted and begun anew. */
function messageId({ id }: Webhook, { tenant, conversation, seq, at, id: event }: Event): string {
  const name = JSON.stringify([id, tenant, conversation, seq, event, at]);
  return `msg_${createHash('sha256').update(name).digest('hex').slice(0, 32)}`;
}
