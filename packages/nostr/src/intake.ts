import { LRUCache } from 'lru-cache';
import {
  type Clock,
  KeyedBuckets,
  TokenBucket,
  type EventId,
  type FollowParts,
  type IntegrationTroupe,
  toTroupeError,
  TroupeError,
} from './troupe.ts';
import type { HighWater } from './high-water.ts';
import {
  type SignedEvent,
  isAhead,
  readEvent,
  type Verify,
  type Thread,
  threadOf,
  isHex32,
  readReferences,
  shortNpub,
  namedBy,
} from './nostr-event.ts';
import type { Refused } from './relay-faults.ts';
import type { RelayLink } from './relay-link.ts';
import type { NostrSettings } from './settings.ts';
import { savePlace, markStored, placeOf, readPlace, rootOf, type Published } from './published.ts';

export interface IntakeParts {
  link: Pick<RelayLink, 'url' | 'query' | 'refuse'>;
  receiver: Pick<Receiver, 'isKnown' | 'isHeard' | 'receive'>;
  agents: OurAgents;
  settings: Pick<NostrSettings, 'kinds' | 'strangers' | 'limits'>;
  /** Number of relays that share the limit on verifications. */
  relays: number;
  verify: Verify;
  mark: Pick<HighWater, 'begin'>;
  /** Called after each event that was handled. */
  handled: (event: SignedEvent) => void;
  clock: Clock;
  signal: AbortSignal;
}

/** Burst of one author: this many seconds of the author's rate. */
const AUTHOR_BURST_S = 10;
/** Most events of all authors that wait for their author's rate. */
const MAX_WAITING = 1_000;

interface Waiting {
  event: SignedEvent;
  done: () => void;
}

const MAX_EARLIER = 200;
const EARLIER_MS = 5_000;

/**
 * Takes the parsed events of one relay to the log.
 * 1. Cheap checks come first: shape, kind, known id, time, addressees, stranger. Ids are hashed and signatures verified
 *    last, at the rate of the settings; a relay that sends more must wait.
 * 2. Events are handled one at a time, and the event loop runs between two of them.
 * 3. An author above their rate delays no other author: their events wait in order, at most `MAX_WAITING` in all. The
 *    first author whose rate allows it goes next.
 */
export class Intake {
  readonly #parts: IntakeParts;
  readonly #verifications: TokenBucket;
  readonly #authors: KeyedBuckets;
  /** By author, in order. No list is empty. */
  readonly #waiting = new Map<string, Waiting[]>();
  #waitingCount = 0;
  #draining: Promise<void> | null = null;

  constructor(parts: IntakeParts) {
    this.#parts = parts;
    const { clock, relays } = parts;
    const { verificationsPerSecond, perAuthorPerSecond } = parts.settings.limits;
    this.#verifications = new TokenBucket({ perSecond: verificationsPerSecond / relays, clock });
    const burst = Math.max(1, perAuthorPerSecond * AUTHOR_BURST_S);
    this.#authors = new KeyedBuckets({ perSecond: perAuthorPerSecond, burst, clock });
  }

  /** Resolves when the next event may be taken. */
  async take(raw: unknown): Promise<void> {
    const event = this.#read(raw);
    if (!event) return;
    const done = this.#parts.mark.begin(event.created_at);
    const before = this.#waiting.get(event.pubkey);
    if (!before && this.#authors.take(event.pubkey) === 0) return this.#finish(event, done);
    if (this.#waitingCount >= MAX_WAITING) {
      done();
      return this.#parts.link.refuse('rate');
    }
    this.#waitingCount += 1;
    if (before) before.push({ event, done });
    else this.#waiting.set(event.pubkey, [{ event, done }]);
    this.#draining ??= this.#takeWaiting();
  }

  /** Resolves when no event is waiting. */
  async idle(): Promise<void> {
    while (this.#draining) await this.#draining;
  }

  #read(raw: unknown): SignedEvent | null {
    const { settings, agents, receiver, clock } = this.#parts;
    const event = readEvent(raw);
    if (typeof event === 'string') return this.#refuse(event);
    if (!settings.kinds.includes(event.kind)) return this.#refuse('unasked');
    if (receiver.isKnown(event.id)) return null;
    if (isAhead(event, clock.now())) return this.#refuse('future');
    if (agents.has(event.pubkey)) return this.#refuse('echo');
    if (addressedBy(event, agents).length === 0) return this.#refuse('unasked');
    if (settings.strangers === 'ignore' && !receiver.isHeard(event.pubkey)) return this.#refuse('stranger');
    return event;
  }

  #refuse(reason: Refused): null {
    this.#parts.link.refuse(reason);
    return null;
  }

  async #takeWaiting(): Promise<void> {
    const { clock, signal } = this.#parts;
    while (!signal.aborted && this.#waitingCount > 0) {
      const { own, waitMs } = this.#nextAuthor();
      const [next] = own;
      if (!next) await clock.sleep(waitMs, signal);
      else {
        await this.#finish(next.event, next.done);
        own.shift();
        this.#waitingCount -= 1;
        if (own.length === 0) this.#waiting.delete(next.event.pubkey);
      }
    }
    this.#draining = null;
  }

  /** The events of the first author whose rate allows one. If there is none, the time until there is one. */
  #nextAuthor(): { own: Waiting[]; waitMs: number } {
    let least = Infinity;
    for (const [pubkey, own] of this.#waiting) {
      const waitMs = this.#authors.take(pubkey);
      if (waitMs === 0) return { own, waitMs };
      least = Math.min(least, waitMs);
    }
    return { own: [], waitMs: least };
  }

  async #finish(event: SignedEvent, done: () => void): Promise<void> {
    const { receiver, link, handled } = this.#parts;
    if (receiver.isKnown(event.id)) return done();
    if (!(await this.#isValid(event))) {
      // After a stop the event stays pending, and the mark stays before it.
      if (!this.#parts.signal.aborted) done();
      return;
    }
    const find = (id: string) => this.#find(id);
    const outcome = await receiver.receive(event, link.url, (thread) => this.#earlier(thread), find);
    if (outcome === null) return;
    if (outcome !== 'stored') link.refuse(outcome);
    done();
    handled(event);
  }

  async #isValid(event: SignedEvent): Promise<boolean> {
    const { clock, signal, link, verify } = this.#parts;
    for (;;) {
      const waitMs = this.#verifications.take();
      if (signal.aborted) return false;
      if (waitMs === 0) break;
      await clock.sleep(waitMs, signal);
    }
    const refused = verify(event);
    if (refused) link.refuse(refused);
    await clock.sleep(0);
    return refused === null;
  }

  /** The event that another one answers, from this relay. */
  async #find(id: string): Promise<SignedEvent | null> {
    const { link, clock } = this.#parts;
    const answered = link.query({ ids: [id] }, { timeoutMs: EARLIER_MS, limit: 1 });
    const [raw] = await answered.catch(() => []);
    const event = readEvent(raw);
    if (typeof event === 'string' || event.id !== id || isAhead(event, clock.now())) return null;
    return (await this.#isValid(event)) ? event : null;
  }

  /** The earlier events of a thread, from this relay. A failed query is not repeated: they are only context. */
  async #earlier(thread: Thread): Promise<SignedEvent[]> {
    const { link, settings, clock } = this.#parts;
    const { rootEvent, filter } = thread;
    const asked = [
      ...(rootEvent === null ? [] : [link.query({ ids: [rootEvent] }, { timeoutMs: EARLIER_MS, limit: 1 })]),
      link.query({ kinds: settings.kinds, ...filter }, { timeoutMs: EARLIER_MS, limit: MAX_EARLIER }),
    ];
    const answers = await Promise.allSettled(asked);
    const found = new Map<string, SignedEvent>();
    for (const raw of answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))) {
      const event = readEvent(raw);
      if (typeof event === 'string') link.refuse(event);
      else if (!settings.kinds.includes(event.kind) || threadOf(event).root !== thread.root) continue;
      else if (found.has(event.id) || isAhead(event, clock.now())) continue;
      else if (await this.#isValid(event)) found.set(event.id, event);
      if (found.size === MAX_EARLIER) break;
    }
    return [...found.values()].toSorted((a, b) => a.created_at - b.created_at || (a.id < b.id ? -1 : 1));
  }
}

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
type FindEarlier = (thread: Thread) => Promise<SignedEvent[]>;
/** Finds an event by its id, verified; null if the relay has none. Never rejects. */
type FindEvent = (id: string) => Promise<SignedEvent | null>;

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
/** Most events that are followed to the root of a thread, and how many of them a relay is asked for. */
const MAX_ABOVE = 32;
const MAX_ASKED = 4;
/** The form of session ids that the log accepts. */
const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/**
 * Puts verified events into conversations.
 *  V1  The id of an event is its id in the log, so an event from several relays is stored once. Its message may differ
 *      between two attempts if the event it answers arrived in between; the first message stays.
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

  /** Whether this process has stored the event. */
  isKnown(id: string): boolean {
    return this.#stored.get(id) !== undefined;
  }

  /** Whether the author may wake agents. */
  isHeard(pubkey: string): boolean {
    return this.#parts.settings.strangers === 'dispatch' || this.#parts.people.has(pubkey);
  }

  /** Stores a verified event. Resolves when it is in the log or finally refused; null if it was stopped first. */
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

  /** The thread of an event, from what is known of the events that its tags name. */
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

  /** The root of the conversation that has an event, if this process stored it or one of our agents wrote it. */
  async #rootHere(id: string): Promise<string | null> {
    const { publishedAs, settings } = this.#parts;
    const conversation = this.#stored.get(id) ?? (await publishedAs(id))?.conversation;
    return conversation === undefined ? null : rootOf(conversation, settings.conversationPrefix);
  }

  /** Returns false if it was stopped first. */
  async #store(event: SignedEvent, thread: Thread, relay: string, earlier: FindEarlier): Promise<boolean> {
    // One event of a stranger must not cost reading a whole thread.
    if (this.isHeard(event.pubkey) && !(await this.#putEarlier(event, thread, relay, earlier))) return false;
    await this.#put(event, thread, relay, addressedBy(event, this.#parts.agents));
    return true;
  }

  /** Returns false if it was stopped first. */
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
      // Newer events also arrive live. The first version is stored, so both versions must have the same addressees.
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
    // Saved first, so that an answer finds the event that it answers.
    const isNamed = threadOf(event).root === thread.root;
    const own = placeOf(event, relay);
    const place = await savePlace(keyValue, isNamed ? own : { ...own, root: thread.root });
    if (place.stored) return void this.#stored.set(id, conversation);
    const { replyTo, isOurs } = await this.#answered(thread.parent, conversation);
    // An event that names none of our agents must not wake the agent that answers unaddressed messages.
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

  /** The session in the tag `claude-session`, for the first addressee. The log notes it if the author may not name one. */
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

  /** Whether the author may wake agents and has not exceeded `answersInARow`. */
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

/** A thread by the root of its conversation. A root that is a hash of a subject is not an event. */
function rooted(root: string): Pick<Thread, 'root'> & Partial<Thread> {
  return isHex32(root) ? { root, rootEvent: root, filter: { '#e': [root] } } : { root };
}

/** Agents by pubkey. */
type OurAgents = ReadonlyMap<string, { id: string; name: string }>;

/**
 * Ids of our agents that an event names, each once. An event signed by one of them is an echo and addresses none. Only `p`
 * tags count, whatever the text says.
 */
export function addressedBy(event: Pick<SignedEvent, 'pubkey' | 'tags'>, agents: OurAgents): string[] {
  if (agents.has(event.pubkey)) return [];
  return namedBy(event).flatMap((pubkey) => agents.get(pubkey)?.id ?? []);
}

/** A longer pause ends an exchange, ms. Models answer within seconds; people take longer. */
const PAUSE_MS = 60_000;
const MAX_CONVERSATIONS = 10_000;
/** Most authors counted in one conversation. One more resets the counts. */
const MAX_AUTHORS = 100;

interface Answer {
  conversation: string;
  pubkey: string;
  /** Id of the event. A retried event counts once. */
  id: string;
  /** Whether it answers a message of one of our agents. */
  isToUs: boolean;
}

interface Exchange {
  count: number;
  at: number;
  id: string;
}

/**
 * Counts how often an author and our agents answer each other without a pause. The limit on hops cannot stop two installations
 * that answer each other forever, because each incoming event counts as a person's.
 *  E1  An author who speaks after a pause, or does not answer us, resets the counts of the whole conversation.
 *  E2  Pauses are measured by arrival in this process, because an author chooses the time in an event.
 */
export class Exchanges {
  readonly #most: number;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #conversations = new LRUCache<string, Map<string, Exchange>>({ max: MAX_CONVERSATIONS });

  constructor(most: number, clock: Pick<Clock, 'monotonic'>) {
    this.#most = most;
    this.#clock = clock;
  }

  /** The number of answers so far if it exceeds the limit, else null. */
  tooMany({ conversation, pubkey, id, isToUs }: Answer): number | null {
    const at = this.#clock.monotonic();
    const authors = this.#conversations.get(conversation) ?? new Map<string, Exchange>();
    const before = authors.get(pubkey);
    if (before?.id !== id) {
      const isAfterPause = before !== undefined && at - before.at > PAUSE_MS;
      if (!isToUs || isAfterPause || authors.size >= MAX_AUTHORS) authors.clear();
      const count = isToUs ? (authors.get(pubkey)?.count ?? 0) + 1 : 0;
      authors.set(pubkey, { count, at, id });
      this.#conversations.set(conversation, authors);
    }
    const { count } = authors.get(pubkey) ?? { count: 0 };
    return count > this.#most ? count : null;
  }
}
