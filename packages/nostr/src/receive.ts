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
import { notePlace, noteStored, placeOf, recallPlace } from './place.ts';
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
  /** Pubkeys whose words wake agents. */
  people: ReadonlySet<string>;
  /** Which event of the log was published under an id of Nostr. */
  publishedAs: Published['publishedAs'];
  /** Seconds: what is older is not on its way to us by itself. */
  horizon: number;
  clock: Clock;
  random: () => number;
  signal: AbortSignal;
  onWarning: (error: unknown, where: string) => void;
}

/** Finds what was said in a thread before an event, verified, oldest first. Never rejects. */
export type FindEarlier = (thread: Thread) => Promise<SignedEvent[]>;

export interface Receiver {
  /** Whether it was taken in by this process. */
  isKnown(id: string): boolean;
  isHeard(pubkey: string): boolean;
  /** A verified event. Resolves when it is in the log, or never will be; null: we were stopped before. */
  receive(event: SignedEvent, relay: string, earlier: FindEarlier): Promise<'stored' | Refused | null>;
}

interface Answered {
  replyTo: string | null;
  isOurs: boolean;
}

const NOTHING: Answered = { replyTo: null, isOurs: false };
const FIRST_PAUSE_MS = 250;
const MOST_PAUSE_MS = 30_000;
/** What fails so often for a reason that does not pass by itself is given up. */
const MAX_TRIES = 10;
const MAX_KNOWN = 50_000;

/**
 * Puts verified events into conversations. The id of an event is its id in the log: what several relays bring is one
 * event, in whatever order. Its payload may differ between two times (what it answers was not there yet the first time):
 * as the id is the hash of what was signed, the first one counts. What was said before in a thread is asked for once, when
 * somebody who is heard first speaks there; note `nostr/thread/<root>`.
 */
export function createReceiver(parts: ReceiverParts): Receiver {
  const { troupe, keyValue, settings, agents, people, clock, signal } = parts;
  /** Events by id, with their conversation. */
  const stored = new RecentKeys<string>(MAX_KNOWN);
  /** Roots of threads whose beginning was asked for. */
  const begun = new RecentKeys<true>(MAX_KNOWN);
  const exchanges = new Exchanges(settings.limits.answersInARow, clock);

  const isHeard = (pubkey: string) => settings.strangers === 'dispatch' || people.has(pubkey);
  const isKept = (pubkey: string) => settings.strangers !== 'ignore' || people.has(pubkey);

  /** What an event answers in its conversation, and whether an agent of ours said it. */
  async function answered(parent: string | null, conversation: string): Promise<Answered> {
    if (parent === null) return NOTHING;
    if (stored.get(parent) === conversation) return { replyTo: parent, isOurs: false };
    const published = await parts.publishedAs(parent);
    if (published) {
      return published.conversation === conversation ? { replyTo: published.event, isOurs: true } : NOTHING;
    }
    const place = await recallPlace(keyValue, parent);
    const isHere = place && settings.conversationPrefix + threadOf(place).root === conversation;
    return isHere ? { replyTo: parent, isOurs: false } : NOTHING;
  }

  /** Whose words wake whom they name: those who are heard, as long as they do not answer each other like machines. */
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
    // First, so that whoever answers it finds where it came from.
    const place = await notePlace(
      keyValue,
      placeOf({ ...event, tags: event.tags.map((tag) => [...tag]) }, relay),
    );
    if (place.stored) return stored.set(id, conversation);
    const { replyTo, isOurs } = await answered(thread.parent, conversation);
    // Who names nobody of ours must not wake whoever answers what is addressed to nobody.
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
    await noteStored(keyValue, place);
    stored.set(id, conversation);
  }

  /** False where we were stopped before. */
  async function putEarlier(event: SignedEvent, thread: Thread, relay: string, earlier: FindEarlier) {
    const key = `nostr/thread/${thread.root}`;
    if (begun.get(key) || (await keyValue.get(key)) !== null) return true;
    const found = thread.root === event.id ? [] : await earlier(thread);
    // What was found may be a part of it.
    if (signal.aborted) return false;
    for (const each of found) {
      if (each.id === event.id || agents.has(each.pubkey) || !isKept(each.pubkey)) continue;
      // What is newer will come by itself, and wake whom it names: the first to bring it decides, so it must be the same.
      const to = each.created_at < parts.horizon ? [] : addressedBy(each, agents);
      await put(each, threadOf(each), relay, to);
    }
    // After all of it, so that a crash in between repeats it.
    await keyValue.compareAndSet(key, null, 'begun');
    begun.set(key, true);
    return true;
  }

  async function receive(event: SignedEvent, relay: string, earlier: FindEarlier): Promise<boolean> {
    const thread = threadOf(event);
    // Words that wake nobody need nothing before them: else one word of a stranger would cost a whole thread.
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
 * Ids of our agents that an event names, each once. What one of them has signed addresses none: it is our own word,
 * brought back. Nothing but `p` tags counts, whatever the text says.
 */
export function addressedBy(event: Pick<SignedEvent, 'pubkey' | 'tags'>, agents: OurAgents): string[] {
  if (agents.has(event.pubkey)) return [];
  return namedBy(event).flatMap((pubkey) => agents.get(pubkey)?.id ?? []);
}
