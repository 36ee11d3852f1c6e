import {
  type Clock,
  type EventId,
  type IntegrationTroupe,
  type KeyValue,
  toTroupeError,
  TroupeError,
} from './troupe.ts';
import { Exchanges, RecentKeys } from './exchanges.ts';
import type { SignedEvent } from './nostr-event.ts';
import { savePlace, markStored, placeOf, readPlace } from './place.ts';
import type { Published } from './published.ts';
import { readReferences, shortNpub } from './references.ts';
import type { Refused } from './relay-faults.ts';
import type { NostrSettings } from './settings.ts';
import { type Thread, threadOf } from './thread-of.ts';
import { namedBy } from './signed-event.ts';

export interface ReceiverParts {
  troupe: Pick<IntegrationTroupe, 'send'>;
  keyValue: KeyValue;
  settings: Pick<NostrSettings, 'strangers' | 'conversationPrefix'> & { limits: { answersInARow: number } };
  agents: OurAgents;
  /** Pubkeys of people who may wake agents. */
  people: ReadonlySet<string>;
  /** The event of the log that was published under a Nostr id. */
  publishedAs: Published['publishedAs'];
  /** Relays are not asked for events before this time, seconds. */
  horizon: number;
  clock: Clock;
  random: () => number;
  signal: AbortSignal;
  onWarning: (error: unknown, where: string) => void;
}

/** Finds the earlier events of a thread, verified, oldest first. Never rejects. */
export type FindEarlier = (thread: Thread) => Promise<SignedEvent[]>;

export interface Receiver {
  /** True if this process has stored the event. */
  isKnown(id: string): boolean;
  isHeard(pubkey: string): boolean;
  /** Stores a verified event. Resolves when it is in the log or refused for good; null: stopped before. */
  receive(event: SignedEvent, relay: string, earlier: FindEarlier): Promise<'stored' | Refused | null>;
}

interface Answered {
  replyTo: string | null;
  isOurs: boolean;
}

const NOTHING: Answered = { replyTo: null, isOurs: false };
const FIRST_PAUSE_MS = 250;
const MOST_PAUSE_MS = 30_000;
/** Attempts for errors that do not pass by themselves. */
const MAX_TRIES = 10;
const MAX_KNOWN = 50_000;

/**
 * Puts verified events into conversations. The id of an event is its id in the log, so an event from several relays is
 * stored once. Its message may differ between two attempts, if the event it answers arrived in between. The id is the hash of
 * what was signed, so the first message stays. Earlier events of a thread are requested once, when somebody who may wake
 * agents first speaks there; entry `nostr/thread/<root>`.
 */
export function createReceiver(parts: ReceiverParts): Receiver {
  const { troupe, keyValue, settings, agents, people, clock, signal } = parts;
  /** Conversations by id of the event. */
  const stored = new RecentKeys<string>(MAX_KNOWN);
  /** Threads whose earlier events were requested. */
  const begun = new RecentKeys<true>(MAX_KNOWN);
  const exchanges = new Exchanges(settings.limits.answersInARow, clock);

  const isHeard = (pubkey: string) => settings.strangers === 'dispatch' || people.has(pubkey);
  const isKept = (pubkey: string) => settings.strangers !== 'ignore' || people.has(pubkey);

  /** The message that an event answers in its conversation, and whether one of our agents wrote it. */
  async function answered(parent: string | null, conversation: string): Promise<Answered> {
    if (parent === null) return NOTHING;
    if (stored.get(parent) === conversation) return { replyTo: parent, isOurs: false };
    const published = await parts.publishedAs(parent);
    if (published) {
      return published.conversation === conversation ? { replyTo: published.event, isOurs: true } : NOTHING;
    }
    const place = await readPlace(keyValue, parent);
    const isHere = place && settings.conversationPrefix + threadOf(place).root === conversation;
    return isHere ? { replyTo: parent, isOurs: false } : NOTHING;
  }

  /** True if the author may wake agents and has not exceeded `answersInARow`. */
  function mayWake({ id, pubkey }: SignedEvent, conversation: string, isToUs: boolean): boolean {
    if (!isHeard(pubkey)) return false;
    const count = exchanges.tooMany({ conversation, pubkey, id, isToUs });
    if (count === settings.limits.answersInARow + 1) {
      const who = `${shortNpub(pubkey)} and agents here have answered each other ${count} times`;
      const what = `${who} in ${conversation} without a pause: its words wake nobody until it makes one`;
      parts.onWarning(new Error(what), 'nostr');
    }
    return count === null;
  }

  async function put(event: SignedEvent, thread: Thread, relay: string, to: string[]): Promise<void> {
    const conversation = settings.conversationPrefix + thread.root;
    const { id, pubkey } = event;
    // Saved first, so that an answer finds its parent.
    const place = await savePlace(
      keyValue,
      placeOf({ ...event, tags: event.tags.map((tag) => [...tag]) }, relay),
    );
    if (place.stored) return stored.set(id, conversation);
    const { replyTo, isOurs } = await answered(thread.parent, conversation);
    // An event that names none of our agents must not wake the agent for unaddressed messages.
    const wakes = to.length > 0 && mayWake(event, conversation, isOurs);
    const nameOf = (key: string) => agents.get(key)?.name ?? null;
    await troupe
      .send(conversation, {
        id: id as EventId,
        author: { kind: 'user', id: pubkey, name: shortNpub(pubkey) },
        to,
        content: readReferences(event.content, nameOf),
        ...(replyTo !== null && { replyTo: replyTo as EventId }),
        ...(!wakes && { untrusted: true as const }),
      })
      .catch((error: unknown) => {
        if (!(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
      });
    await markStored(keyValue, place);
    stored.set(id, conversation);
  }

  /** Returns false if stopped before. */
  async function putEarlier(event: SignedEvent, thread: Thread, relay: string, earlier: FindEarlier) {
    const key = `nostr/thread/${thread.root}`;
    if (begun.get(key) || (await keyValue.get(key)) !== null) return true;
    const found = thread.root === event.id ? [] : await earlier(thread);
    // After a stop the search may be incomplete.
    if (signal.aborted) return false;
    for (const each of found) {
      if (each.id === event.id || agents.has(each.pubkey) || !isKept(each.pubkey)) continue;
      // Newer events also arrive live. The first version is stored, so both must have the same addressees.
      const to = each.created_at < parts.horizon ? [] : addressedBy(each, agents);
      await put(each, threadOf(each), relay, to);
    }
    // Written last, so that a crash in between repeats the work.
    await keyValue.compareAndSet(key, null, 'begun');
    begun.set(key, true);
    return true;
  }

  async function receive(event: SignedEvent, relay: string, earlier: FindEarlier): Promise<boolean> {
    const thread = threadOf(event);
    // Only authors who may wake agents get the thread fetched: one event of a stranger must not cost a whole thread.
    if (isHeard(event.pubkey) && !(await putEarlier(event, thread, relay, earlier))) return false;
    await put(event, thread, relay, addressedBy(event, agents));
    return true;
  }

  return {
    isKnown: (id) => stored.get(id) !== undefined,
    isHeard,
    async receive(event, relay, earlier) {
      if (agents.has(event.pubkey)) return 'echo';
      if (!isKept(event.pubkey)) return 'stranger';
      for (let tries = 1; !signal.aborted; tries++) {
        try {
          return (await receive(event, relay, earlier)) ? 'stored' : null;
        } catch (thrown) {
          const error = toTroupeError(thrown);
          if (error.policy === 'fix_input') return 'troupe';
          const willPass = error.policy === 'retry' || error.policy === 'operator';
          if (tries === MAX_TRIES) parts.onWarning(error, 'nostr');
          if (tries >= MAX_TRIES && !willPass && error.code !== 'shutting_down') return 'troupe';
          const pauseMs = Math.min(MOST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(tries - 1, 10));
          await clock.sleep(pauseMs * (0.5 + parts.random() / 2), signal);
        }
      }
      return null;
    },
  };
}

/** Agents by pubkey. */
export type OurAgents = ReadonlyMap<string, { id: string; name: string }>;

/**
 * Ids of our agents that an event names, each once. An event signed by one of them is an echo and addresses none. Only `p`
 * tags count, whatever the text says.
 */
export function addressedBy(event: Pick<SignedEvent, 'pubkey' | 'tags'>, agents: OurAgents): string[] {
  if (agents.has(event.pubkey)) return [];
  return namedBy(event).flatMap((pubkey) => agents.get(pubkey)?.id ?? []);
}
