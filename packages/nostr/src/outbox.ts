import { LRUCache } from 'lru-cache';
import {
  followLog,
  type FollowParts,
  type KeyValue,
  type LogFollower,
  type NostrOutboxStatus,
} from './troupe.ts';
import { hashOfUrl } from './high-water.ts';
import type { Publisher } from './publisher.ts';
import type { RelayLink } from './relay-link.ts';

export interface Outbox extends Pick<LogFollower, 'idle' | 'close'> {
  status(): NostrOutboxStatus;
}

export interface OutboxParts extends FollowParts {
  link: Pick<RelayLink, 'url' | 'publish'>;
  publisher: Publisher;
  counted?: ((outcome: 'published' | 'refused' | 'failed') => void) | undefined;
}

/** NIP-01 reasons for which a later attempt may succeed. Any other reason is final. */
const LATER: readonly string[] = ['rate-limited', 'error', 'auth-required'];
const DECIDED: readonly string[] = ['blocked', 'invalid', 'pow', 'restricted', 'mute'];

/** Attempts for an event that a relay leaves unanswered while it answers other requests (O2). */
const MAX_UNANSWERED = 5;
const MAX_COUNTED = 100;

/**
 * Publishes agents' messages and questions to one relay.
 *  O1  Each event is sent at least once, in the order of its conversation, however long the relay is away. The event is
 *      the same each time, so a relay stores it once.
 *  O2  A final refusal is counted and the event skipped; the first refusal of each kind is reported. A relay that answers
 *      other requests but not this event, several times, refuses it: relays do that with long events.
 *  O3  A relay does not delay another.
 *  O4  Events from before the first setup of this relay are not sent to it.
 */
export async function openOutbox(parts: OutboxParts): Promise<Outbox> {
  const { link, publisher, keyValue, clock, onWarning, counted = () => {} } = parts;
  const name = `nostr/${hashOfUrl(link.url)}`;
  const refused: Record<string, number> = {};
  const unanswered = new LRUCache<string, number>({ max: MAX_COUNTED });
  let published = 0;

  function refuse(reason: string, kind: string): void {
    counted('refused');
    refused[kind] = (refused[kind] ?? 0) + 1;
    if (refused[kind] > 1) return;
    onWarning(
      new Error(`the relay ${link.url} refuses events of agents: ${reason || 'no reason given'}`),
      'nostr',
    );
  }

  const follower = followLog(parts, {
    name,
    wants: (conversation) => publisher.wants(conversation),
    since: await sinceOf(keyValue, name, clock.now()),
    cares: (event) => publisher.cares(event),
    async deliver(event, signal) {
      const signed = await publisher.eventOf(event);
      if (!signed || signal.aborted) return signal.throwIfAborted();
      const { accepted, reason } = await link.publish(signed);
      const kind = /^([a-z-]+):/.exec(reason)?.[1] ?? 'other';
      if (accepted || kind === 'duplicate') {
        published += 1;
        return counted('published');
      }
      if (kind === 'unanswered') {
        const tries = (unanswered.get(signed.id) ?? 0) + 1;
        if (tries >= MAX_UNANSWERED) return refuse(reason, kind);
        unanswered.set(signed.id, tries);
      } else if (!LATER.includes(kind)) return refuse(reason, DECIDED.includes(kind) ? kind : 'other');
      counted('failed');
      throw new Error(reason);
    },
  });

  return {
    status() {
      const { behind, failures, lastError, retryAt } = follower.status();
      return { url: link.url, behind, published, refused: { ...refused }, failures, lastError, retryAt };
    },
    idle: () => follower.idle(),
    close: () => follower.close(),
  };
}

/** Time at which any process first set up this relay, ms. */
async function sinceOf(keyValue: KeyValue, name: string, now: number): Promise<number> {
  return Number(await keyValue.compareAndSet(`${name}/since`, null, String(now)));
}
