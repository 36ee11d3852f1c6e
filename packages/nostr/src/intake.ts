import { type Clock, KeyedBuckets, TokenBucket } from './troupe.ts';
import { addressedBy, type OurAgents, type Receiver } from './receive.ts';
import type { HighWater } from './high-water.ts';
import type { SignedEvent } from './nostr-event.ts';
import type { Refused } from './relay-faults.ts';
import type { RelayLink } from './relay-link.ts';
import type { NostrSettings } from './settings.ts';
import { isAhead, readEvent, type Verify } from './signed-event.ts';
import { type Thread, threadOf } from './thread-of.ts';

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

/** Burst of one author, in seconds of their rate. */
const AUTHOR_BURST_S = 10;
/** Events of all authors that may wait for their author's rate. */
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
 *    last, at the rate of the settings; a relay that sends more waits.
 * 2. Events are handled one at a time, and the event loop runs between two of them.
 * 3. An author over their rate delays no other author: their events wait in order, at most `MAX_WAITING` in all. The first
 *    author whose rate allows it goes next.
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

  /** Resolves when nothing waits. */
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

  /** The events of the first author whose rate allows one; without such an author, the time until there is one. */
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
      // After a stop the event stays pending, and the mark before it.
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

  /** An event that another one answers, from this relay. */
  async #find(id: string): Promise<SignedEvent | null> {
    const { link, clock } = this.#parts;
    const answered = link.query({ ids: [id] }, { timeoutMs: EARLIER_MS, limit: 1 });
    const [raw] = await answered.catch(() => []);
    const event = readEvent(raw);
    if (typeof event === 'string' || event.id !== id || isAhead(event, clock.now())) return null;
    return (await this.#isValid(event)) ? event : null;
  }

  /** The earlier events of a thread from this relay. A failed query is not repeated: the event matters more than its context. */
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
