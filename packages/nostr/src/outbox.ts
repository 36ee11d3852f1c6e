import { LRUCache } from 'lru-cache';
import {
  followLog,
  type FollowParts,
  type KeyValue,
  type LogFollower,
  type NostrOutboxStatus,
  type AgentId,
  type Event,
  parseTurnId,
} from './troupe.ts';
import { hashOfUrl } from './high-water.ts';
import type { RelayLink } from './relay-link.ts';
import { answered, composeReply, type LogReader } from './compose-reply.ts';
import type { AgentSigners } from './agent-signers.ts';
import { type Place, readPlace, rootOf, type Published, type Said } from './published.ts';
import { isHex32, type SignedEvent } from './nostr-event.ts';

export interface Outbox extends Pick<LogFollower, 'idle' | 'close'> {
  status(): NostrOutboxStatus;
}

export interface OutboxParts extends FollowParts {
  link: Pick<RelayLink, 'url' | 'publish'>;
  publisher: Publisher;
  counted?: ((outcome: 'published' | 'refused' | 'failed') => void) | undefined;
}

/** NIP-01 reasons for which a later attempt may succeed. All others are final. */
const LATER: readonly string[] = ['rate-limited', 'error', 'auth-required'];
const DECIDED: readonly string[] = ['blocked', 'invalid', 'pow', 'restricted', 'mute'];

/** Attempts for an event to which a relay does not answer, although it answers other requests (O2). */
const MAX_UNANSWERED = 5;
const MAX_COUNTED = 100;

/**
 * Publishes agents' messages and questions to one relay.
 *  O1  Each event is sent at least once, in the order of its conversation, however long the relay is away. The event is
 *      the same each time, so a relay stores it once.
 *  O2  After a final refusal the event is counted and skipped; the first refusal of each kind is reported. If a relay
 *      answers other requests but, several times, not this event, that counts as a refusal: relays do that with long events.
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

interface PublisherParts {
  log: LogReader;
  keyValue: Pick<KeyValue, 'get'>;
  published: Published;
  signers: Pick<AgentSigners, 'of' | 'pubkeys'>;
  /** Prefix of conversations, before the root of the thread. */
  prefix: string;
  /** A relay that has our events, as a hint. */
  relay: string;
}

/** Turns agents' events into signed Nostr events. Each is signed once, for all relays and attempts. */
interface Publisher {
  wants(conversation: string): boolean;
  /** False if the event alone shows that there is nothing to publish. */
  cares(event: Event): boolean;
  /** Null if the event answers nothing on Nostr. Rejects if a key or the store cannot be reached; the caller then tries again. */
  eventOf(event: Event): Promise<SignedEvent | null>;
}

export function createPublisher(parts: PublisherParts): Publisher {
  const { log, keyValue, published, signers, prefix, relay } = parts;
  const ours = new Set(signers.pubkeys.values());
  const underWay = new Map<string, Promise<SignedEvent | null>>();

  const wants = (conversation: string) => rootOf(conversation, prefix) !== null;

  /** Null for a thread whose subject is not an event. */
  function rootIdOf({ conversation }: Event): string | null {
    const root = rootOf(conversation, prefix);
    return isHex32(root ?? undefined) ? root : null;
  }

  async function parentOf(said: Event, root: Place | null): Promise<Place | null> {
    for await (const event of answered(log, said)) {
      const place = await placeIn(event);
      if (place) return place;
    }
    return root;
  }

  /** The place of a message that came from Nostr or was published there; else null. */
  async function placeIn(event: Event): Promise<Place | null> {
    if (event.author.kind === 'agent') return published.place(whereIs(event), relay);
    const place = await readPlace(keyValue, event.id);
    // Another author may have stored a message under this event's id.
    return place?.pubkey === event.author.id ? place : null;
  }

  async function compose(event: Event): Promise<SignedEvent | null> {
    const part = publicPart(event);
    const signer = part && signers.of(part.agent);
    if (!part || !signer || !wants(event.conversation)) return null;
    const { content } = part;
    const said = whereIs(event);
    const before = await published.get(said, content);
    if (before) return before;
    const rootId = rootIdOf(event);
    const root = rootId === null ? null : await readPlace(keyValue, rootId);
    const parent = await parentOf(event, root);
    if (!parent) return null;
    const template = composeReply({
      content,
      at: event.at,
      self: signer.pubkey,
      parent,
      rootId,
      root,
      to: event.to.flatMap((agent: AgentId) => signers.pubkeys.get(agent) ?? []),
      ours,
    });
    return published.save(said, await signer.sign(template));
  }

  return {
    wants,
    cares(event) {
      const part = publicPart(event);
      return part !== null && signers.of(part.agent) !== null;
    },
    eventOf(event) {
      const key = `${event.conversation}/${event.id}/${event.at}`;
      const asked = underWay.get(key) ?? compose(event).finally(() => underWay.delete(key));
      underWay.set(key, asked);
      return asked;
    },
  };
}

function whereIs({ conversation, id, at }: Event): Said {
  return { conversation, event: id, at };
}

/**
 * The public content of an agent's event: a message, or a question to people. Null for all other events. The event must come from
 * a turn of that agent in this conversation, because a client may send a message under an agent's name, which must not be signed.
 */
function publicPart(event: Event): { agent: AgentId; content: string } | null {
  const { author, turn, conversation } = event;
  const content = contentOf(event);
  const origin = turn === undefined ? null : parseTurnId(turn);
  if (content === null || content.trim() === '' || author.kind !== 'agent') return null;
  const by = event.formerly?.author ?? author.id;
  if (origin?.agent !== by || origin.conversation !== conversation) return null;
  return { agent: author.id as AgentId, content };
}

function contentOf(event: Event): string | null {
  if (event.kind === 'message') return event.body.content;
  if (event.kind !== 'question') return null;
  const { text, choices = [] } = event.body;
  return [text, ...choices.map((choice) => `- ${choice}`)].join('\n');
}
