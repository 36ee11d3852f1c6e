import { type AgentId, type Event, type KeyValue, parseTurnId } from './troupe.ts';
import { answered, composeReply, type LogReader } from './compose-reply.ts';
import type { AgentSigners } from './agent-signers.ts';
import { type Place, recallPlace, rootOf } from './place.ts';
import { isHex32, type SignedEvent } from './nostr-event.ts';
import type { Published, Said } from './published.ts';

export interface PublisherParts {
  log: LogReader;
  keyValue: Pick<KeyValue, 'get'>;
  published: Published;
  signers: Pick<AgentSigners, 'of' | 'pubkeys'>;
  /** Before the root of a thread: the conversation. */
  prefix: string;
  /** Where our own events can be read, as a hint. */
  relay: string;
}

/** Turns what agents say into signed events, each once, however many relays and tries there are. */
export interface Publisher {
  wants(conversation: string): boolean;
  /** Whether there is something of it to publish, as far as the event itself tells. */
  cares(event: Event): boolean;
  /** Null where there is nothing to answer on Nostr. Rejects where a key or the store cannot be reached: try again. */
  eventOf(event: Event): Promise<SignedEvent | null>;
}

export function createPublisher(parts: PublisherParts): Publisher {
  const { log, keyValue, published, signers, prefix, relay } = parts;
  const ours = new Set(signers.pubkeys.values());
  const underWay = new Map<string, Promise<SignedEvent | null>>();

  const wants = (conversation: string) => rootOf(conversation, prefix) !== null;

  /** Null of a thread about something that is no event. */
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

  /** Of a message that came from Nostr, or went there. */
  async function placeIn(event: Event): Promise<Place | null> {
    if (event.author.kind === 'agent') return published.place(whereIs(event), relay);
    const place = await recallPlace(keyValue, event.id);
    // Somebody else may have brought words under the id of an event.
    return place?.pubkey === event.author.id ? place : null;
  }

  async function compose(event: Event): Promise<SignedEvent | null> {
    const words = wordsOf(event);
    const signer = words && signers.of(words.agent);
    if (!words || !signer || !wants(event.conversation)) return null;
    const { content } = words;
    const said = whereIs(event);
    const before = await published.get(said, content);
    if (before) return before;
    const rootId = rootIdOf(event);
    const root = rootId === null ? null : await recallPlace(keyValue, rootId);
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
    return published.note(said, await signer.sign(template));
  }

  return {
    wants,
    cares(event) {
      const words = wordsOf(event);
      return words !== null && signers.of(words.agent) !== null;
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
 * What an agent says to everybody with an event: a message, or a question to people. Null for all other events.
 * Only what a turn of that agent in this conversation has said counts: a client may bring words as those of an agent, and
 * nothing is signed for it.
 */
function wordsOf(event: Event): { agent: AgentId; content: string } | null {
  const { author, turn, conversation } = event;
  const content = contentOf(event);
  const made = turn === undefined ? null : parseTurnId(turn);
  if (content === null || content.trim() === '' || author.kind !== 'agent') return null;
  if (made?.agent !== author.id || made.conversation !== conversation) return null;
  return { agent: made.agent, content };
}

function contentOf(event: Event): string | null {
  if (event.kind === 'message') return event.body.content;
  if (event.kind !== 'question') return null;
  const { text, choices = [] } = event.body;
  return [text, ...choices.map((choice) => `- ${choice}`)].join('\n');
}
