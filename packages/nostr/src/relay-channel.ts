import { LRUCache } from 'lru-cache';
import { type Clock, TokenBucket } from './troupe.ts';
import type { Filter, SignedEvent } from './nostr-event.ts';
import { type Frame, RelaySocket, type SocketTiming } from './relay-socket.ts';
import type { Refused } from './relay-faults.ts';

export interface FollowHandlers {
  /** The next event is read after this has resolved. */
  event(raw: unknown, bytes: number): void | Promise<void>;
  /**
   * Called after each connection, once all stored events were passed on. `received`: their number. Live events are read after
   * this has resolved.
   */
  caughtUp(received: number): void | Promise<void>;
}

interface ChannelParts {
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
  isClosed: boolean;
  heardAt: number;
  ids: Set<string>;
}

type Answer = { type: 'all'; events: unknown[] } | { type: 'closed'; reason: string } | { type: 'silent' };

/** Time without an event or EOSE after which a relay counts as stalled, ms. */
const EOSE_MS = 30_000;
/** Pause before a subscription that the relay ended is requested again, ms. */
const REQUEST_AGAIN_MS = 10_000;
/** Most ids kept per subscription, to recognise repeated events. */
const MAX_IDS = 5_000;
const MAX_ENDED = 100;
/** Most events that a busy relay may still send for a closed subscription. */
const MAX_LATE = 200;
const AUTH_REQUIRED = 'auth-required:';

/**
 * Subscriptions, queries and publishing over one connection at a time. When the connection is lost, running requests are sent
 * again over the next one until they time out, so any request may take effect twice.
 */
export class RelayChannel {
  readonly #parts: ChannelParts;
  readonly #socket: RelaySocket;
  readonly #login: RelayLogin;
  readonly #closing = new AbortController();
  readonly #subscriptions = new Map<string, Subscription>();
  /** Number of late events that are still accepted, by closed subscription. */
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

  /** Whether a login may help. If so, requests that were refused before are sent again after it. */
  #canAuthenticate(reason: string): boolean {
    return reason.startsWith(AUTH_REQUIRED) && this.#login.isPossible;
  }
}

export interface Published {
  accepted: boolean;
  /** The relay's reason, shortened. Ours start with `error: `, or `unanswered: ` if the relay answers only other requests. */
  reason: string;
}

/** Whether a relay has an event. `silent`: it did not answer. */
type Found = 'yes' | 'no' | 'silent';

interface PublishesParts {
  clock: Clock;
  closing: AbortSignal;
  login: RelayLogin;
  isOpen(): boolean;
  /** Returns false without a connection. */
  send(frame: unknown[]): boolean;
  find(id: string, timeoutMs: number): Promise<Found>;
  answered(): void;
}

interface Publish {
  event: SignedEvent;
  answer(published: Published): void;
  /** Time of sending over the current connection; null if not sent over it yet. */
  sentAt: number | null;
  wasAuthenticated: boolean;
  /** Whether no other event was under way meanwhile: a notice or a lost connection then concerns this one. */
  isAlone: boolean;
  notice: string;
  /** Ends the wait. */
  cut: AbortController;
}

/** Shortest event that may break a connection by its length: no relay has a lower limit on messages. */
const LONG_CHARS = 16_384;
/** Timers may wake some milliseconds early. */
const MOST_OF_TIMEOUT = 0.9;
const NOT_CONNECTED: Published = { accepted: false, reason: 'error: not connected' };
const NO_ANSWER: Published = { accepted: false, reason: 'error: no answer' };
const TOO_LONG: Published = { accepted: false, reason: 'unanswered: the message is too long for the relay' };

/** The events that were sent to a relay, each until it is answered or times out. */
class RelayPublishes {
  readonly #parts: PublishesParts;
  readonly #underWay = new Map<string, Publish>();

  constructor(parts: PublishesParts) {
    this.#parts = parts;
  }

  async publish(event: SignedEvent, timeoutMs: number): Promise<Published> {
    const { promise, resolve } = Promise.withResolvers<Published>();
    const publish: Publish = {
      event,
      answer: resolve,
      sentAt: null,
      wasAuthenticated: this.#parts.login.isKnown,
      isAlone: this.#underWay.size === 0,
      notice: '',
      cut: new AbortController(),
    };
    for (const other of this.#underWay.values()) other.isAlone = false;
    this.#underWay.set(event.id, publish);
    this.#send(publish);
    const done = new AbortController();
    const unanswered = this.#unanswered(publish, timeoutMs, done.signal);
    const published = await Promise.race([promise, unanswered]);
    done.abort();
    this.#underWay.delete(event.id);
    return published;
  }

  /** Sends all events again, over a new connection or after a login. */
  sendAll(): void {
    for (const publish of this.#underWay.values()) this.#send(publish);
  }

  /** Returns false if no such event is under way. `canAuthenticate`: whether a login may help. */
  answered(id: string, { accepted, reason }: Published, canAuthenticate: boolean): boolean {
    const publish = this.#underWay.get(id);
    if (!publish) return false;
    if (!accepted && !publish.wasAuthenticated && canAuthenticate) {
      publish.wasAuthenticated = true;
      if (this.#parts.login.isKnown) this.#send(publish);
      return true;
    }
    this.#parts.answered();
    publish.answer({ accepted, reason });
    return true;
  }

  /** Some relays explain a missing answer with a notice. */
  noticed(text: string): void {
    for (const publish of this.#underWay.values()) if (publish.sentAt !== null) publish.notice = text;
  }

  /** `isTooLong`: the relay closed the connection because a message was too long. */
  lost(isTooLong: boolean): void {
    for (const publish of this.#underWay.values()) {
      if (publish.sentAt === null) continue;
      if (publish.isAlone && isTooLong) publish.answer(TOO_LONG);
      else if (publish.isAlone && publish.event.content.length >= LONG_CHARS) publish.cut.abort();
      publish.sentAt = null;
    }
  }

  #send(publish: Publish): void {
    if (this.#parts.send(['EVENT', publish.event])) publish.sentAt = this.#parts.clock.monotonic();
  }

  /** Distinguishes silence about one event from a silent relay, because no event is given up while a relay is away. */
  async #unanswered(publish: Publish, timeoutMs: number, done: AbortSignal): Promise<Published> {
    const { clock, closing } = this.#parts;
    await clock.sleep(timeoutMs, AbortSignal.any([done, closing, publish.cut.signal]));
    const wasCut = publish.cut.signal.aborted;
    if (done.aborted || closing.aborted || (!wasCut && !this.#parts.isOpen())) return NOT_CONNECTED;
    const hadTime =
      publish.sentAt !== null && clock.monotonic() - publish.sentAt >= timeoutMs * MOST_OF_TIMEOUT;
    const found = await this.#parts.find(publish.event.id, timeoutMs);
    if (found === 'yes') return { accepted: true, reason: '' };
    if (found === 'silent') return this.#parts.isOpen() ? NO_ANSWER : NOT_CONNECTED;
    if (!publish.isAlone || (!hadTime && !wasCut)) return NO_ANSWER;
    const why =
      publish.notice || (wasCut ? 'the connection broke while it was sent' : 'the relay does not answer');
    return { accepted: false, reason: `unanswered: ${why}` };
  }
}

/** Signs a login (NIP-42). Null: the client does not log in. */
export type Authenticate = (challenge: string, url: string) => Promise<SignedEvent | null>;

interface LoginParts {
  url: string;
  clock: Pick<Clock, 'monotonic'>;
  authenticate: Authenticate | null;
  send(event: SignedEvent): void;
  failed(error: unknown): void;
}

/** Challenges accepted at once on one connection. An honest relay needs one. */
const BURST = 3;
/** One more challenge per minute is accepted, because a signer may have been unavailable. */
const PER_SECOND = 1 / 60;

/**
 * Logs in to a relay. A challenge costs the relay nothing, but costs us a signature, perhaps by a remote signer:
 *  L1  One challenge is signed at a time, then only the newest that arrived meanwhile.
 *  L2  Only a few challenges of a connection are accepted.
 *  L3  A login signed for an earlier connection is not sent over this one.
 */
export class RelayLogin {
  readonly #parts: LoginParts;
  #budget: TokenBucket;
  /** The newest challenge of this connection. Null: the next one is signed even if it is the same. */
  #challenge: string | null = null;
  #isSigning = false;
  #sentId: string | null = null;
  #isKnown = false;

  constructor(parts: LoginParts) {
    this.#parts = parts;
    this.#budget = this.#fullBudget();
  }

  /** Whether a login may help with a request that was refused without one. */
  get isPossible(): boolean {
    return !this.#isKnown && this.#parts.authenticate !== null;
  }

  get isKnown(): boolean {
    return this.#isKnown;
  }

  connected(): void {
    this.#budget = this.#fullBudget();
    this.#challenge = null;
    this.#sentId = null;
    this.#isKnown = false;
  }

  /** Returns false for a repeated challenge, or for one too many. */
  challenged(challenge: string): boolean {
    if (challenge === this.#challenge || this.#budget.take() > 0) return false;
    this.#challenge = challenge;
    const { authenticate } = this.#parts;
    // Not awaited: a remote signer may be slow, or be reached over this relay.
    if (authenticate && !this.#isSigning) void this.#sign(authenticate);
    return true;
  }

  /** Whether the answer belongs to a login. */
  answered(id: string, accepted: boolean): boolean {
    if (id !== this.#sentId) return false;
    this.#sentId = null;
    this.#isKnown = accepted;
    return true;
  }

  async #sign(authenticate: Authenticate): Promise<void> {
    this.#isSigning = true;
    let challenge: string | null = null;
    let event: SignedEvent | null = null;
    while (this.#challenge !== challenge && this.#challenge !== null) {
      challenge = this.#challenge;
      event = await this.#signed(authenticate, challenge);
    }
    this.#isSigning = false;
    if (this.#challenge === null) return;
    if (!event) this.#challenge = null;
    else {
      this.#sentId = event.id;
      this.#parts.send(event);
    }
  }

  async #signed(authenticate: Authenticate, challenge: string): Promise<SignedEvent | null> {
    try {
      return await authenticate(challenge, this.#parts.url);
    } catch (error) {
      this.#parts.failed(error);
      return null;
    }
  }

  #fullBudget(): TokenBucket {
    return new TokenBucket({ perSecond: PER_SECOND, burst: BURST, clock: this.#parts.clock });
  }
}
