import type { Clock } from '../clock.ts';
import type { Filter, SignedEvent } from './nostr-event.ts';
import { RecentKeys } from './recent-keys.ts';
import type { Frame } from './read-frame.ts';
import type { Refused } from './refused.ts';
import { RelaySocket, type SocketTiming } from './relay-socket.ts';

export interface Published {
  accepted: boolean;
  /** As the relay gave it, cut; `error: ` begins what it did not say itself. */
  reason: string;
}

export interface FollowHandlers {
  /** The next event is read when this has resolved. */
  event(raw: unknown, bytes: number): void | Promise<void>;
  /**
   * All that the relay had is handed over; again after each connection. `received`: how much that was. What comes live is
   * read when this has resolved.
   */
  caughtUp(received: number): void | Promise<void>;
}

/** Signs who we are (NIP-42); null for nobody. */
export type Authenticate = (challenge: string, url: string) => Promise<SignedEvent | null>;

export interface ChannelParts {
  url: string;
  clock: Clock;
  random: () => number;
  timing: SocketTiming;
  maxEventBytes: number;
  authenticate: Authenticate | null;
  opened(): void;
  lost(why: string): void;
  received(): void;
  refused(reason: Refused): void;
  throttled(ms: number): void;
  /** Nothing was said for too long. */
  stalled(): void;
  /** It keeps its word: something that it was asked for came to its end. */
  answered(): void;
}

interface Subscription {
  filters(): Filter[];
  event(raw: unknown, bytes: number): void | Promise<void>;
  ended(received: number): void | Promise<void>;
  closed(reason: string): void;
  /** Of the present REQ. */
  asked: number;
  left: number;
  received: number;
  isCaughtUp: boolean;
  heardAt: number;
  ids: Set<string>;
}

interface Publish {
  event: SignedEvent;
  resolve(published: Published): void;
  wasAuthenticated: boolean;
}

/** After so long without an event or an end of them, a relay has stalled. */
const EOSE_MS = 30_000;
/** Before a subscription that the relay has ended is asked for again. */
const REASK_MS = 10_000;
/** Of a subscription: the newest ids are known to have been sent. */
const MAX_IDS = 5_000;
const MAX_ENDED = 100;
const AUTH_REQUIRED = 'auth-required:';

/**
 * Subscriptions, queries and publishing over one connection at a time. Whatever is under way when the connection is lost
 * is asked for or sent again over the next one, until its time is over: all of it may be repeated.
 */
export class RelayChannel {
  readonly #parts: ChannelParts;
  readonly #socket: RelaySocket;
  readonly #closing = new AbortController();
  readonly #subscriptions = new Map<string, Subscription>();
  /** Of these there may still be events on their way. */
  readonly #ended = new RecentKeys<true>(MAX_ENDED);
  readonly #publishes = new Map<string, Publish>();
  #authId: string | null = null;
  #isAuthenticated = false;
  #asked = 0;

  constructor(parts: ChannelParts) {
    this.#parts = parts;
    this.#socket = new RelaySocket({
      ...parts,
      opened: () => this.#opened(),
      frame: (frame, bytes) => this.#frame(frame, bytes),
      lost: (why, wasStalled) => {
        parts.lost(why);
        if (wasStalled) parts.stalled();
      },
    });
  }

  get isOpen(): boolean {
    return this.#socket.isOpen;
  }

  follow(filters: () => Filter[], handlers: FollowHandlers): () => void {
    const name = this.#subscribe({
      filters,
      event: (raw, bytes) => handlers.event(raw, bytes),
      ended: (received) => handlers.caughtUp(received),
      closed: () => void this.#reask(name),
    });
    return () => this.#unsubscribe(name);
  }

  query(filter: Filter, { timeoutMs, limit }: { timeoutMs: number; limit: number }): Promise<unknown[]> {
    return new Promise((resolve, reject) => {
      const events: unknown[] = [];
      const done = new AbortController();
      const name = this.#subscribe({
        filters: () => [{ ...filter, limit }],
        event: (raw) => void events.push(raw),
        ended: () => finish(() => resolve(events)),
        closed: (reason) => finish(() => reject(new Error(`${this.#parts.url} ends a query: ${reason}`))),
      });
      const finish = (how: () => void) => {
        done.abort();
        this.#unsubscribe(name);
        how();
      };
      void this.#parts.clock
        .sleep(timeoutMs, AbortSignal.any([done.signal, this.#closing.signal]))
        .then(() => {
          if (done.signal.aborted) return;
          if (!this.#closing.signal.aborted && this.isOpen) this.#parts.stalled();
          finish(() => reject(new Error(`${this.#parts.url} does not answer a query`)));
        });
    });
  }

  publish(event: SignedEvent, timeoutMs: number): Promise<Published> {
    return new Promise((resolve) => {
      const done = new AbortController();
      const settle = (published: Published) => {
        done.abort();
        this.#publishes.delete(event.id);
        resolve(published);
      };
      this.#publishes.set(event.id, { event, resolve: settle, wasAuthenticated: this.#isAuthenticated });
      this.#socket.send(['EVENT', event]);
      void this.#parts.clock
        .sleep(timeoutMs, AbortSignal.any([done.signal, this.#closing.signal]))
        .then(() => {
          if (done.signal.aborted) return;
          const isStalled = this.isOpen && !this.#closing.signal.aborted;
          if (isStalled) this.#parts.stalled();
          settle({ accepted: false, reason: isStalled ? 'error: no answer' : 'error: not connected' });
        });
    });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#socket.close();
  }

  #opened(): void {
    this.#isAuthenticated = false;
    this.#authId = null;
    this.#parts.opened();
    this.#sendAll();
  }

  #sendAll(): void {
    for (const name of this.#subscriptions.keys()) this.#request(name);
    for (const { event } of this.#publishes.values()) this.#socket.send(['EVENT', event]);
  }

  #subscribe(handlers: Pick<Subscription, 'filters' | 'event' | 'ended' | 'closed'>): string {
    this.#asked += 1;
    const name = `t${this.#asked}`;
    const fresh = { asked: 0, left: 0, received: 0, isCaughtUp: false, heardAt: 0, ids: new Set<string>() };
    this.#subscriptions.set(name, { ...handlers, ...fresh });
    this.#request(name);
    return name;
  }

  #unsubscribe(name: string): void {
    if (!this.#subscriptions.delete(name)) return;
    this.#ended.set(name, true);
    this.#socket.send(['CLOSE', name]);
  }

  #request(name: string): void {
    const subscription = this.#subscriptions.get(name);
    if (!subscription || !this.#socket.isOpen) return;
    const filters = subscription.filters();
    if (filters.length === 0) return;
    subscription.asked += 1;
    subscription.left = filters.reduce((sum, { limit = Infinity }) => sum + limit, 0);
    subscription.received = 0;
    subscription.isCaughtUp = false;
    subscription.heardAt = this.#parts.clock.monotonic();
    subscription.ids.clear();
    this.#socket.send(['REQ', name, ...filters]);
    void this.#watch(name, subscription.asked);
  }

  async #watch(name: string, asked: number): Promise<void> {
    const { clock } = this.#parts;
    for (;;) {
      await clock.sleep(EOSE_MS, this.#closing.signal);
      const subscription = this.#subscriptions.get(name);
      if (this.#closing.signal.aborted || !subscription || subscription.asked !== asked) return;
      if (subscription.isCaughtUp || !this.isOpen) return;
      if (clock.monotonic() - subscription.heardAt < EOSE_MS) continue;
      this.#socket.cut();
      return this.#parts.stalled();
    }
  }

  async #reask(name: string): Promise<void> {
    await this.#parts.clock.sleep(REASK_MS, this.#closing.signal);
    if (!this.#closing.signal.aborted) this.#request(name);
  }

  #frame(frame: Frame, bytes: number): void | Promise<void> {
    switch (frame.type) {
      case 'refused':
        return this.#parts.refused(frame.reason);
      case 'EVENT':
        return this.#event(frame.sub, frame.event, bytes);
      case 'EOSE': {
        const subscription = this.#subscriptions.get(frame.sub);
        if (!subscription || subscription.isCaughtUp) return;
        subscription.isCaughtUp = true;
        this.#parts.answered();
        return subscription.ended(subscription.received);
      }
      case 'CLOSED': {
        if (this.#canAuthenticate(frame.reason)) return;
        return this.#subscriptions.get(frame.sub)?.closed(frame.reason);
      }
      case 'OK':
        return this.#ok(frame.id, frame);
      case 'AUTH':
        return void this.#authenticate(frame.challenge);
      case 'NOTICE':
    }
  }

  #event(name: string, raw: unknown, bytes: number): void | Promise<void> {
    const subscription = this.#subscriptions.get(name);
    this.#parts.received();
    if (!subscription) return this.#ended.get(name) ? undefined : this.#parts.refused('unasked');
    subscription.heardAt = this.#parts.clock.monotonic();
    if (!subscription.isCaughtUp) {
      subscription.left -= 1;
      if (subscription.left < 0) return this.#parts.refused('unasked');
    }
    const id = (raw as { id?: unknown } | null)?.id;
    if (typeof id === 'string') {
      if (subscription.ids.has(id)) return this.#parts.refused('repeated');
      subscription.ids.add(id.slice(0, 64));
      const [oldest] = subscription.ids;
      if (subscription.ids.size > MAX_IDS && oldest !== undefined) subscription.ids.delete(oldest);
    }
    subscription.received += 1;
    return subscription.event(raw, bytes);
  }

  #ok(id: string, { accepted, reason }: Published): void {
    if (id === this.#authId) {
      this.#isAuthenticated = accepted;
      this.#authId = null;
      if (accepted) this.#sendAll();
      return;
    }
    const publish = this.#publishes.get(id);
    if (!publish) return;
    if (!accepted && !publish.wasAuthenticated && this.#canAuthenticate(reason)) {
      publish.wasAuthenticated = true;
      if (this.#isAuthenticated) this.#socket.send(['EVENT', publish.event]);
      return;
    }
    this.#parts.answered();
    publish.resolve({ accepted, reason });
  }

  /** What was refused for want of it is asked for again once the relay knows us. */
  #canAuthenticate(reason: string): boolean {
    return reason.startsWith(AUTH_REQUIRED) && !this.#isAuthenticated && this.#parts.authenticate !== null;
  }

  async #authenticate(challenge: string): Promise<void> {
    const { url, authenticate } = this.#parts;
    try {
      const event = await authenticate?.(challenge, url);
      if (!event) return;
      this.#authId = event.id;
      this.#socket.send(['AUTH', event]);
    } catch (error) {
      this.#parts.lost(`it cannot be told who we are: ${String(error)}`);
    }
  }
}
