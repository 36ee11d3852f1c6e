import { LRUCache } from 'lru-cache';
import {
  type EventId,
  type FollowParts,
  type IntegrationTroupe,
  toTroupeError,
  TroupeError,
} from './troupe.ts';
import { Exchanges } from './exchanges.ts';
import { isHex32, type SignedEvent } from './nostr-event.ts';
import { savePlace, markStored, placeOf, readPlace, rootOf } from './place.ts';
import type { Published } from './published.ts';
import { readReferences, shortNpub } from './references.ts';
import type { Refused } from './relay-faults.ts';
import type { NostrSettings } from './settings.ts';
import { type Thread, threadOf } from './thread-of.ts';
import { namedBy } from './signed-event.ts';

export interface ReceiverParts extends Pick<FollowParts, 'keyValue' | 'clock' | 'random' | 'onWarning'> {
  troupe: Pick<IntegrationTroupe, 'send'>;
  settings: Pick<NostrSettings, 'strangers' | 'conversationPrefix'> & { limits: { answersInARow: number } };
  agents: OurAgents;
  /** Pubkeys of people who may wake agents. */
  people: ReadonlySet<string>;
  /** Pubkeys of people who may name sessions. */
  operators: ReadonlySet<string>;
  /** Finds the event of the log that was published under a Nostr id. */
  publishedAs: Published['publishedAs'];
  /** Relays are not asked for events before this time, seconds. */
  horizon: number;
  signal: AbortSignal;
}

/** Finds the earlier events of a thread, verified, oldest first. Never rejects. */
export type FindEarlier = (thread: Thread) => Promise<SignedEvent[]>;
/** Finds an event by its id, verified; null if the relay has none. Never rejects. */
export type FindEvent = (id: string) => Promise<SignedEvent | null>;

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
/** Events that are followed to the root of a thread, and those of them that a relay is asked for. */
const MAX_ABOVE = 32;
const MAX_ASKED = 4;
/** As the log takes it. */
const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/**
 * Puts verified events into conversations.
 *  V1  The id of an event is its id in the log, so an event from several relays is stored once. Its message may differ
 *      between two attempts, if the event it answers arrived in between; the first message stays.
 *  V2  Earlier events of a thread are requested once, when an author who may wake agents first speaks there: entry
 *      `nostr/thread/<root>`.
 *  V3  Many clients name only the answered event, without the root. Such an event belongs to the conversation of the event
 *      that it answers.
 */
export class Receiver {
  readonly #parts: ReceiverParts;
  /** Conversations by id of the event. */
  readonly #stored = new LRUCache<string, string>({ max: MAX_KNOWN });
  /** Threads whose earlier events were requested. */
  readonly #begun = new LRUCache<string, true>({ max: MAX_KNOWN });
  readonly #exchanges: Exchanges;

  constructor(parts: ReceiverParts) {
    this.#parts = parts;
    this.#exchanges = new Exchanges(parts.settings.limits.answersInARow, parts.clock);
  }

  /** True if this process has stored the event. */
  isKnown(id: string): boolean {
    return this.#stored.get(id) !== undefined;
  }

  /** True if the author may wake agents. */
  isHeard(pubkey: string): boolean {
    return this.#parts.settings.strangers === 'dispatch' || this.#parts.people.has(pubkey);
  }

  /** Stores a verified event. Resolves when it is in the log or refused for good; null: stopped before. */
  async receive(
    event: SignedEvent,
    relay: string,
    earlier: FindEarlier,
    find: FindEvent = () => Promise.resolve(null),
  ): Promise<'stored' | Refused | null> {
    const { agents, clock, random, signal, onWarning } = this.#parts;
    if (agents.has(event.pubkey)) return 'echo';
    if (!this.#isKept(event.pubkey)) return 'stranger';
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        const thread = await this.#threadOf(event, find);
        return (await this.#store(event, thread, relay, earlier)) ? 'stored' : null;
      } catch (thrown) {
        const error = toTroupeError(thrown);
        if (error.policy === 'fix_input') return 'troupe';
        const willPass = error.policy === 'retry' || error.policy === 'operator';
        if (tries === MAX_TRIES) onWarning(error, 'nostr');
        if (tries >= MAX_TRIES && !willPass && error.code !== 'shutting_down') return 'troupe';
        const pauseMs = Math.min(MOST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(tries - 1, 10));
        await clock.sleep(pauseMs * (0.5 + random() / 2), signal);
      }
    }
    return null;
  }

  #isKept(pubkey: string): boolean {
    return this.#parts.settings.strangers !== 'ignore' || this.#parts.people.has(pubkey);
  }

  /** The thread of an event, by what is known of the events that its tags name. */
  async #threadOf(event: SignedEvent, find: FindEvent): Promise<Thread> {
    const thread = threadOf(event);
    const { keyValue } = this.#parts;
    let asked = this.isHeard(event.pubkey) ? 0 : MAX_ASKED;
    let above = thread;
    for (let steps = 0; steps < MAX_ABOVE && above.rootEvent !== null; steps++) {
      const id = above.rootEvent;
      if (id === event.id || this.#begun.get(id)) break;
      const here = await this.#rootHere(id);
      const place = here === null ? await readPlace(keyValue, id) : null;
      const root = here ?? place?.root;
      if (root != null) return { ...above, ...rooted(root), parent: thread.parent };
      const named = place ?? (asked++ < MAX_ASKED ? await find(id) : null);
      if (named === null) break;
      above = threadOf(named);
      if (above.root === id) break;
    }
    return { ...above, parent: thread.parent };
  }

  /** The root of the conversation that has an event, if this process has stored it or one of our agents said it. */
  async #rootHere(id: string): Promise<string | null> {
    const { publishedAs, settings } = this.#parts;
    const conversation = this.#stored.get(id) ?? (await publishedAs(id))?.conversation;
    return conversation === undefined ? null : rootOf(conversation, settings.conversationPrefix);
  }

  /** Returns false if stopped before. */
  async #store(event: SignedEvent, thread: Thread, relay: string, earlier: FindEarlier): Promise<boolean> {
    // One event of a stranger must not cost a whole thread.
    if (this.isHeard(event.pubkey) && !(await this.#putEarlier(event, thread, relay, earlier))) return false;
    await this.#put(event, thread, relay, addressedBy(event, this.#parts.agents));
    return true;
  }

  /** Returns false if stopped before. */
  async #putEarlier(
    event: SignedEvent,
    thread: Thread,
    relay: string,
    earlier: FindEarlier,
  ): Promise<boolean> {
    const { keyValue, agents, horizon, signal } = this.#parts;
    const key = `nostr/thread/${thread.root}`;
    if (this.#begun.get(key) || (await keyValue.get(key)) !== null) return true;
    const found = thread.root === event.id ? [] : await earlier(thread);
    // After a stop the search may be incomplete.
    if (signal.aborted) return false;
    for (const each of found) {
      if (each.id === event.id || agents.has(each.pubkey) || !this.#isKept(each.pubkey)) continue;
      // Newer events also arrive live. The first version is stored, so both must have the same addressees.
      const to = each.created_at < horizon ? [] : addressedBy(each, agents);
      await this.#put(each, threadOf(each), relay, to);
    }
    // Written last, so that a crash in between repeats the work.
    await keyValue.compareAndSet(key, null, 'begun');
    this.#begun.set(key, true);
    return true;
  }

  async #put(event: SignedEvent, thread: Thread, relay: string, to: string[]): Promise<void> {
    const { troupe, keyValue, settings, agents } = this.#parts;
    const conversation = settings.conversationPrefix + thread.root;
    const { id, pubkey } = event;
    // Saved first, so that an answer finds its parent.
    const isNamed = threadOf(event).root === thread.root;
    const own = placeOf(event, relay);
    const place = await savePlace(keyValue, isNamed ? own : { ...own, root: thread.root });
    if (place.stored) return void this.#stored.set(id, conversation);
    const { replyTo, isOurs } = await this.#answered(thread.parent, conversation);
    // An event that names none of our agents must not wake the agent for unaddressed messages.
    const wakes = to.length > 0 && this.#mayWake(event, conversation, isOurs);
    const nameOf = (key: string) => agents.get(key)?.name ?? null;
    await troupe
      .send(conversation, {
        id: id as EventId,
        author: { kind: 'user', id: pubkey, name: shortNpub(pubkey) },
        to,
        content: readReferences(event.content, nameOf),
        channel: 'nostr',
        ...(wakes && this.#sessionOf(event, to)),
        ...(replyTo !== null && { replyTo: replyTo as EventId }),
        ...(!wakes && { untrusted: true as const }),
      })
      .catch((error: unknown) => {
        if (!(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
      });
    await markStored(keyValue, place);
    this.#stored.set(id, conversation);
  }

  /** The session in the tag `claude-session`. It is the first addressee's; the log says so if the author may not name one. */
  #sessionOf({ pubkey, tags }: SignedEvent, [agent]: readonly string[]) {
    const id = tags.find(([name]) => name === 'claude-session')?.[1] ?? '';
    if (agent === undefined || !SESSION_ID.test(id)) return {};
    const refused = this.#parts.operators.has(pubkey) ? {} : { refused: 'author' as const };
    return { session: { agent, provider: 'claude-code', id, ...refused } };
  }

  /** The message that an event answers in its conversation, and whether one of our agents wrote it. */
  async #answered(parent: string | null, conversation: string): Promise<Answered> {
    if (parent === null) return NOTHING;
    if (this.#stored.get(parent) === conversation) return { replyTo: parent, isOurs: false };
    const published = await this.#parts.publishedAs(parent);
    if (published) {
      return published.conversation === conversation ? { replyTo: published.event, isOurs: true } : NOTHING;
    }
    const place = await readPlace(this.#parts.keyValue, parent);
    const root = place && (place.root ?? threadOf(place).root);
    const isHere = this.#parts.settings.conversationPrefix + root === conversation;
    return isHere ? { replyTo: parent, isOurs: false } : NOTHING;
  }

  /** True if the author may wake agents and has not exceeded `answersInARow`. */
  #mayWake({ id, pubkey }: SignedEvent, conversation: string, isToUs: boolean): boolean {
    if (!this.isHeard(pubkey)) return false;
    const count = this.#exchanges.tooMany({ conversation, pubkey, id, isToUs });
    if (count === this.#parts.settings.limits.answersInARow + 1) {
      const who = `${shortNpub(pubkey)} and agents here have answered each other ${count} times`;
      const what = `${who} in ${conversation} without a pause: its events wake no agent until it pauses`;
      this.#parts.onWarning(new Error(what), 'nostr');
    }
    return count === null;
  }
}

/** A thread by the root of its conversation, which is no event if it is a hash of a subject. */
function rooted(root: string): Pick<Thread, 'root'> & Partial<Thread> {
  return isHex32(root) ? { root, rootEvent: root, filter: { '#e': [root] } } : { root };
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
