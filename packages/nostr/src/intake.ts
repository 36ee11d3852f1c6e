import { type Clock, KeyedBuckets, TokenBucket } from './troupe.ts';
import { addressedBy, type OurAgents, type Receiver } from './receive.ts';
import type { HighWater } from './high-water.ts';
import type { SignedEvent } from './nostr-event.ts';
import type { Refused } from './relay-faults.ts';
import type { RelayLink } from './relay-link.ts';
import type { NostrSettings } from './settings.ts';
import { isAhead, readEvent, type Verify } from './signed-event.ts';
import { type Thread, threadOf } from './thread-of.ts';
import { WebSocket } from 'ws';

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
/** Events of all authors that wait for their rate limit. */
const MAX_PUT_OFF = 1_000;

interface PutOff {
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
 * 3. An author over their rate holds up nobody else: their events wait aside, in order, up to `MAX_PUT_OFF` in all. The
 *    first author whose rate allows it goes next.
 */
export class Intake {
  readonly #parts: IntakeParts;
  readonly #verifications: TokenBucket;
  readonly #authors: KeyedBuckets;
  /** By author, none of them empty. */
  readonly #putOff = new Map<string, PutOff[]>();
  #waiting = 0;
  #catchingUp: Promise<void> | null = null;

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
    const before = this.#putOff.get(event.pubkey);
    if (!before && this.#authors.take(event.pubkey) === 0) return this.#finish(event, done);
    if (this.#waiting >= MAX_PUT_OFF) {
      done();
      return this.#parts.link.refuse('rate');
    }
    this.#waiting += 1;
    if (before) before.push({ event, done });
    else this.#putOff.set(event.pubkey, [{ event, done }]);
    this.#catchingUp ??= this.#takePutOff();
  }

  /** Resolves when nothing waits. */
  async idle(): Promise<void> {
    while (this.#catchingUp) await this.#catchingUp;
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

  async #takePutOff(): Promise<void> {
    const { clock, signal } = this.#parts;
    while (!signal.aborted && this.#waiting > 0) {
      const { own, waitMs } = this.#nextAuthor();
      const [next] = own;
      if (!next) await clock.sleep(waitMs, signal);
      else {
        await this.#finish(next.event, next.done);
        own.shift();
        this.#waiting -= 1;
        if (own.length === 0) this.#putOff.delete(next.event.pubkey);
      }
    }
    this.#catchingUp = null;
  }

  /** The first author whose rate allows an event; if there is none, the time until one does. */
  #nextAuthor(): { own: PutOff[]; waitMs: number } {
    let least = Infinity;
    for (const [pubkey, own] of this.#putOff) {
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
      // Not verified before the stop: it stays pending, so the mark stays before it.
      if (!this.#parts.signal.aborted) done();
      return;
    }
    const outcome = await receiver.receive(event, link.url, (thread) => this.#earlier(thread));
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

  /** The thread as this relay has it. Missing parts are not waited for: the event matters more than its context. */
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

interface InflowParts {
  socket: WebSocket;
  clock: Clock;
  bucket: TokenBucket;
  /** The next message is handled when this has resolved. */
  handle(bytes: Buffer): void | Promise<void>;
  throttled(ms: number): void;
}

const THROTTLE_MS = 50;

/**
 * The messages of one connection, one at a time and in order. While one is handled, or after too many, the socket is not
 * read: further messages stay in the buffers of the kernel, then in those of the sender. Without compression, at most one
 * chunk of the socket has been read ahead.
 */
export class Inflow {
  readonly #parts: InflowParts;
  readonly #ended = new AbortController();
  #queue: Buffer[] = [];
  #isBusy = false;

  constructor(parts: InflowParts) {
    this.#parts = parts;
  }

  /** True while the socket may be unread: its silence then means nothing. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  push(bytes: Buffer): void {
    this.#queue.push(bytes);
    if (!this.#isBusy) void this.#drain();
  }

  /** Drops the messages that were not handled yet. */
  end(): void {
    this.#queue = [];
    this.#ended.abort();
  }

  async #drain(): Promise<void> {
    this.#isBusy = true;
    for (let bytes = this.#queue.shift(); bytes; bytes = this.#queue.shift()) {
      while (this.#parts.bucket.take() > 0) await this.#throttle();
      if (this.#ended.signal.aborted) break;
      const handled = this.#parts.handle(bytes);
      if (!handled) continue;
      this.#pause();
      await handled;
    }
    this.#isBusy = false;
    const { socket } = this.#parts;
    if (socket.isPaused && socket.readyState === WebSocket.OPEN) socket.resume();
  }

  async #throttle(): Promise<void> {
    this.#pause();
    this.#parts.throttled(THROTTLE_MS);
    await this.#parts.clock.sleep(THROTTLE_MS, this.#ended.signal);
    if (this.#ended.signal.aborted) this.#queue = [];
  }

  #pause(): void {
    if (this.#parts.socket.readyState === WebSocket.OPEN) this.#parts.socket.pause();
  }
}
