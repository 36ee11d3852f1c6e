import { LRUCache } from 'lru-cache';
import type { Clock } from './troupe.ts';
import type { Filter, SignedEvent } from './nostr-event.ts';
import type { Frame } from './read-frame.ts';
import type { Refused } from './relay-faults.ts';
import { type Authenticate, RelayLogin } from './relay-login.ts';
import { type Found, type Published, RelayPublishes } from './relay-publishes.ts';
import { RelaySocket, type SocketTiming } from './relay-socket.ts';

export interface FollowHandlers {
  /** The next event is read after this has resolved. */
  event(raw: unknown, bytes: number): void | Promise<void>;
  /**
   * Called after each connection, when all stored events were passed on. `received`: their number. Live events are read
   * after this has resolved.
   */
  caughtUp(received: number): void | Promise<void>;
}

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
  /** The relay was silent for too long. */
  stalled(): void;
  /** The relay completed a request. */
  answered(): void;
}

interface Subscription {
  filters(): Filter[];
  event(raw: unknown, bytes: number): void | Promise<void>;
  ended(received: number): void | Promise<void>;
  closed(reason: string): void;
  /** Number of the current REQ. */
  asked: number;
  left: number;
  received: number;
  isCaughtUp: boolean;
  /** Ended by the relay. */
  isClosed: boolean;
  heardAt: number;
  ids: Set<string>;
}

type Answer = { type: 'all'; events: unknown[] } | { type: 'closed'; reason: string } | { type: 'silent' };

/** A relay has stalled after this long without an event or EOSE. */
const EOSE_MS = 30_000;
/** Pause before a subscription ended by the relay is requested again. */
const REQUEST_AGAIN_MS = 10_000;
/** Ids kept per subscription, to recognise repeated events. */
const MAX_IDS = 5_000;
const MAX_ENDED = 100;
/** Events that a busy relay may still send for a closed subscription. */
const MAX_LATE = 200;
const AUTH_REQUIRED = 'auth-required:';

/**
 * Subscriptions, queries and publishing over one connection at a time. Requests under way when the connection is lost are
 * sent again over the next one, until they time out. Any request may therefore take effect twice.
 */
export class RelayChannel {
  readonly #parts: ChannelParts;
  readonly #socket: RelaySocket;
  readonly #login: RelayLogin;
  readonly #closing = new AbortController();
  readonly #subscriptions = new Map<string, Subscription>();
  /** Late events still accepted, by closed subscription. */
  readonly #ended = new LRUCache<string, number>({ max: MAX_ENDED });
  readonly #publishes: RelayPublishes;
  #asked = 0;

  constructor(parts: ChannelParts) {
    this.#parts = parts;
    this.#login = new RelayLogin({
      ...parts,
      send: (event) => void this.#socket.send(['AUTH', event]),
      failed: (error) => parts.lost(`the login cannot be signed: ${String(error)}`),
    });
    this.#publishes = new RelayPublishes({
      clock: parts.clock,
      closing: this.#closing.signal,
      login: this.#login,
      isOpen: () => this.isOpen,
      send: (frame) => this.#socket.send(frame),
      find: (id, timeoutMs) => this.#find(id, timeoutMs),
      answered: () => parts.answered(),
    });
    this.#socket = new RelaySocket({
      ...parts,
      opened: () => this.#opened(),
      frame: (frame, bytes) => this.#frame(frame, bytes),
      lost: (why, { wasStalled, isTooLong }) => {
        parts.lost(why);
        this.#publishes.lost(isTooLong);
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
      closed: () => void this.#requestLater(name),
    });
    return () => this.#unsubscribe(name);
  }

  async query(
    filter: Filter,
    { timeoutMs, limit }: { timeoutMs: number; limit: number },
  ): Promise<unknown[]> {
    const answer = await this.#ask(filter, timeoutMs, limit);
    if (answer.type === 'all') return answer.events;
    const { url } = this.#parts;
    if (answer.type === 'silent') throw new Error(`${url} did not answer a query`);
    throw new Error(`${url} refused a query: ${answer.reason}`);
  }

  publish(event: SignedEvent, timeoutMs: number): Promise<Published> {
    return this.#publishes.publish(event, timeoutMs);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#socket.close();
  }

  #ask(filter: Filter, timeoutMs: number, limit: number): Promise<Answer> {
    return new Promise((resolve) => {
      const events: unknown[] = [];
      const done = new AbortController();
      const name = this.#subscribe({
        filters: () => [{ ...filter, limit }],
        event: (raw) => void events.push(raw),
        ended: () => finish({ type: 'all', events }),
        closed: (reason) => finish({ type: 'closed', reason }),
      });
      const finish = (answer: Answer) => {
        done.abort();
        this.#unsubscribe(name);
        resolve(answer);
      };
      void this.#parts.clock
        .sleep(timeoutMs, AbortSignal.any([done.signal, this.#closing.signal]))
        .then(() => {
          if (done.signal.aborted) return;
          if (!this.#closing.signal.aborted && this.isOpen) this.#parts.stalled();
          finish({ type: 'silent' });
        });
    });
  }

  async #find(id: string, timeoutMs: number): Promise<Found> {
    const answer = await this.#ask({ ids: [id] }, timeoutMs, 1);
    if (answer.type === 'silent') return 'silent';
    const events = answer.type === 'all' ? answer.events : [];
    return events.some((raw) => (raw as { id?: unknown } | null)?.id === id) ? 'yes' : 'no';
  }

  #opened(): void {
    this.#login.connected();
    this.#parts.opened();
    this.#sendAll();
  }

  #sendAll(): void {
    for (const name of this.#subscriptions.keys()) this.#request(name);
    this.#publishes.sendAll();
  }

  #subscribe(handlers: Pick<Subscription, 'filters' | 'event' | 'ended' | 'closed'>): string {
    this.#asked += 1;
    const name = `t${this.#asked}`;
    const fresh = {
      asked: 0,
      left: 0,
      received: 0,
      isCaughtUp: false,
      isClosed: false,
      heardAt: 0,
      ids: new Set<string>(),
    };
    this.#subscriptions.set(name, { ...handlers, ...fresh });
    this.#request(name);
    return name;
  }

  #unsubscribe(name: string): void {
    if (!this.#subscriptions.delete(name)) return;
    this.#ended.set(name, MAX_LATE);
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
    subscription.isClosed = false;
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

  async #requestLater(name: string): Promise<void> {
    await this.#parts.clock.sleep(REQUEST_AGAIN_MS, this.#closing.signal);
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
        if (!subscription || subscription.isCaughtUp) return this.#parts.refused('unasked');
        subscription.isCaughtUp = true;
        this.#parts.answered();
        return subscription.ended(subscription.received);
      }
      case 'CLOSED': {
        const subscription = this.#subscriptions.get(frame.sub);
        if (!subscription || subscription.isClosed) return this.#parts.refused('unasked');
        subscription.isClosed = true;
        if (this.#canAuthenticate(frame.reason)) return;
        return subscription.closed(frame.reason);
      }
      case 'OK':
        return this.#ok(frame.id, frame);
      case 'AUTH':
        if (!this.#login.challenged(frame.challenge)) this.#parts.refused('unasked');
        return;
      case 'NOTICE':
        this.#publishes.noticed(frame.text);
        return this.#parts.refused('unasked');
    }
  }

  #event(name: string, raw: unknown, bytes: number): void | Promise<void> {
    const subscription = this.#subscriptions.get(name);
    this.#parts.received();
    if (!subscription) return this.#isLate(name) ? undefined : this.#parts.refused('unasked');
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

  #isLate(name: string): boolean {
    const left = this.#ended.get(name) ?? 0;
    if (left > 0) this.#ended.set(name, left - 1);
    return left > 0;
  }

  #ok(id: string, { accepted, reason }: Published): void {
    if (this.#login.answered(id, accepted)) {
      if (accepted) this.#sendAll();
      return;
    }
    const canAuthenticate = this.#canAuthenticate(reason);
    if (!this.#publishes.answered(id, { accepted, reason }, canAuthenticate)) this.#parts.refused('unasked');
  }

  /** True if a login may help. Requests refused before are sent again after it. */
  #canAuthenticate(reason: string): boolean {
    return reason.startsWith(AUTH_REQUIRED) && this.#login.isPossible;
  }
}
