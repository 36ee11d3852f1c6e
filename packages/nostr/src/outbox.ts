import {
  followLog,
  type FollowParts,
  type KeyValue,
  type LogFollower,
  type NostrOutboxStatus,
} from './troupe.ts';
import { hashOfUrl } from './high-water.ts';
import type { Publisher } from './publisher.ts';
import { RecentKeys } from './exchanges.ts';
import type { RelayLink } from './relay-link.ts';

export interface Outbox extends Pick<LogFollower, 'idle' | 'close'> {
  status(): NostrOutboxStatus;
}

export interface OutboxParts extends FollowParts {
  link: Pick<RelayLink, 'url' | 'publish'>;
  publisher: Publisher;
  counted?: ((outcome: 'published' | 'refused' | 'failed') => void) | undefined;
}

/** NIP-01. What a relay says for these may be otherwise later; for anything else it has decided. */
const LATER: readonly string[] = ['rate-limited', 'error', 'auth-required'];
const DECIDED: readonly string[] = ['blocked', 'invalid', 'pow', 'restricted', 'mute'];

/** Tries of one event about which a relay said nothing, while it answered otherwise; then it will not have it. */
const MAX_UNANSWERED = 5;
const MAX_COUNTED = 100;

/**
 * What agents say, to one relay.
 *  O1  Each event is sent at least once and in the order of its conversation, however long the relay is away. It is the
 *      same event each time, so a relay has it once.
 *  O2  What a relay refuses for good is counted and left; the first refusal of each sort is told. To be silent about one
 *      event again and again is to refuse it: relays do that with what is too long. To be away never is.
 *  O3  One relay holds up no other.
 *  O4  What was said before this relay was first set up is not sent to it.
 */
export async function openOutbox(parts: OutboxParts): Promise<Outbox> {
  const { link, publisher, keyValue, clock, onWarning, counted = () => {} } = parts;
  const name = `nostr/${hashOfUrl(link.url)}`;
  const refused: Record<string, number> = {};
  const unanswered = new RecentKeys<number>(MAX_COUNTED);
  let published = 0;

  function refuse(reason: string, kind: string): void {
    counted('refused');
    refused[kind] = (refused[kind] ?? 0) + 1;
    if (refused[kind] > 1) return;
    onWarning(
      new Error(`the relay ${link.url} refuses what agents say: ${reason || 'without a reason'}`),
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

/** When this relay was first set up, whichever process it was. */
async function sinceOf(keyValue: KeyValue, name: string, now: number): Promise<number> {
  return Number(await keyValue.compareAndSet(`${name}/since`, null, String(now)));
}
