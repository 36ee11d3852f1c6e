import { type Clock, TokenBucket } from './troupe.ts';
import type { SignedEvent } from './nostr-event.ts';

export interface Published {
  accepted: boolean;
  /**
   * The relay's reason, shortened. Our own reasons start with `error: `, or with `unanswered: ` if the relay answers other
   * requests and left only this event unanswered.
   */
  reason: string;
}

/** Answer of a relay that was asked for one event. `silent`: none. */
export type Found = 'yes' | 'no' | 'silent';

export interface PublishesParts {
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
  /** Time of sending over the current connection; null if it was not sent over it. */
  sentAt: number | null;
  wasAuthenticated: boolean;
  /** No other event was under way meanwhile: a notice or a lost connection concerns this one. */
  isAlone: boolean;
  notice: string;
  /** Ends the wait. */
  cut: AbortController;
}

/** Relays limit messages to no less than this. A connection that breaks over a shorter event has another reason. */
const LONG_CHARS = 16_384;
/** Timers may wake some milliseconds early. */
const MOST_OF_IT = 0.9;
const NOT_CONNECTED: Published = { accepted: false, reason: 'error: not connected' };
const NO_ANSWER: Published = { accepted: false, reason: 'error: no answer' };
const TOO_LONG: Published = { accepted: false, reason: 'unanswered: the message is too long for the relay' };

/** Events under way to a relay, each until it is answered or times out. */
export class RelayPublishes {
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

  /** Returns false for an answer to nothing. `canAuthenticate`: a login may help. */
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

  /** The connection was lost. `isTooLong`: the relay closed it because a message was too long. */
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

  /** Distinguishes silence about one event from a silent relay: no event is given up because a relay is away. */
  async #unanswered(publish: Publish, timeoutMs: number, done: AbortSignal): Promise<Published> {
    const { clock, closing } = this.#parts;
    await clock.sleep(timeoutMs, AbortSignal.any([done, closing, publish.cut.signal]));
    const wasCut = publish.cut.signal.aborted;
    if (done.aborted || closing.aborted || (!wasCut && !this.#parts.isOpen())) return NOT_CONNECTED;
    const hadTime = publish.sentAt !== null && clock.monotonic() - publish.sentAt >= timeoutMs * MOST_OF_IT;
    const found = await this.#parts.find(publish.event.id, timeoutMs);
    if (found === 'yes') return { accepted: true, reason: '' };
    if (found === 'silent') return this.#parts.isOpen() ? NO_ANSWER : NOT_CONNECTED;
    if (!publish.isAlone || (!hadTime && !wasCut)) return NO_ANSWER;
    const why = publish.notice || (wasCut ? 'the connection broke over it' : 'the relay says nothing of it');
    return { accepted: false, reason: `unanswered: ${why}` };
  }
}

/** Signs a login (NIP-42). Null: no login. */
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
/** One more challenge a minute: a signer may have been away. */
const PER_SECOND = 1 / 60;

/**
 * Logs in to a relay. A challenge costs the relay nothing and us a signature, maybe by a remote signer:
 *  L1  One challenge is signed at a time, then only the newest that came meanwhile.
 *  L2  Only a few challenges of a connection are accepted.
 *  L3  A login signed for an earlier connection is not sent over this one.
 */
export class RelayLogin {
  readonly #parts: LoginParts;
  #budget: TokenBucket;
  /** The newest challenge of this connection. Null: the next is signed even if it is the same again. */
  #challenge: string | null = null;
  #isSigning = false;
  #sentId: string | null = null;
  #isKnown = false;

  constructor(parts: LoginParts) {
    this.#parts = parts;
    this.#budget = this.#fullBudget();
  }

  /** True if a login may help with a request that was refused without one. */
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

  /** Returns false for one challenge too many. */
  challenged(challenge: string): boolean {
    if (challenge === this.#challenge || this.#budget.take() > 0) return false;
    this.#challenge = challenge;
    const { authenticate } = this.#parts;
    // Not awaited: a remote signer may be slow, and may be reached over this relay.
    if (authenticate && !this.#isSigning) void this.#sign(authenticate);
    return true;
  }

  /** True if the answer belongs to a login. */
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
