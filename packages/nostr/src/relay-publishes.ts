import { type Clock, TokenBucket } from './troupe.ts';
import type { SignedEvent } from './nostr-event.ts';

export interface Published {
  accepted: boolean;
  /**
   * As the relay gave it, cut. What it did not say itself begins with `error: `, or with `unanswered: ` where it had this
   * event alone to answer, said nothing of it, and answers otherwise.
   */
  reason: string;
}

/** What a relay says that is asked for one event. `silent`: nothing. */
export type Found = 'yes' | 'no' | 'silent';

export interface PublishesParts {
  clock: Clock;
  closing: AbortSignal;
  login: RelayLogin;
  isOpen(): boolean;
  /** False where there is no connection. */
  send(frame: unknown[]): boolean;
  find(id: string, timeoutMs: number): Promise<Found>;
  answered(): void;
}

interface Publish {
  event: SignedEvent;
  answer(published: Published): void;
  /** Over the present connection; null where it was not. */
  sentAt: number | null;
  wasAuthenticated: boolean;
  /** No other was under way at any time: what happens is about this one. */
  isAlone: boolean;
  notice: string;
  /** Ends the wait. */
  cut: AbortController;
}

/** The limits of relays on messages begin here: a connection that breaks over less than that has other reasons. */
const LONG_CHARS = 16_384;
/** Timers may wake some milliseconds early. */
const MOST_OF_IT = 0.9;
const NOT_CONNECTED: Published = { accepted: false, reason: 'error: not connected' };
const NO_ANSWER: Published = { accepted: false, reason: 'error: no answer' };
const TOO_LONG: Published = { accepted: false, reason: 'unanswered: the message is too long for the relay' };

/** Events on their way to a relay, each until it is answered or its time is over. */
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

  /** Over a new connection, or after a login. */
  sendAll(): void {
    for (const publish of this.#underWay.values()) this.#send(publish);
  }

  /** False for an answer to nothing. `canAuthenticate`: it may be let through after a login. */
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

  /** Relays say so what they do not say with an answer. */
  noticed(text: string): void {
    for (const publish of this.#underWay.values()) if (publish.sentAt !== null) publish.notice = text;
  }

  /** The connection. `isTooLong`: the relay has ended it over the length of a message. */
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

  /** Silence about an event is told from silence altogether, or an event would be given up for a relay that is away. */
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

/** Signs who we are (NIP-42); null for nobody. */
export type Authenticate = (challenge: string, url: string) => Promise<SignedEvent | null>;

interface LoginParts {
  url: string;
  clock: Pick<Clock, 'monotonic'>;
  authenticate: Authenticate | null;
  send(event: SignedEvent): void;
  failed(error: unknown): void;
}

/** Challenges of one connection: an honest relay needs one. */
const BURST = 3;
/** One more a minute: a signer may have been away when they came. */
const PER_SECOND = 1 / 60;

/**
 * Tells a relay who we are. A challenge costs the relay nothing and us a signature, maybe of a remote signer:
 *  L1  One is signed at a time, and after it only the newest that came meanwhile.
 *  L2  Of one connection only a few are taken.
 *  L3  What was signed for an earlier connection is not sent on this one.
 */
export class RelayLogin {
  readonly #parts: LoginParts;
  #budget: TokenBucket;
  /** The newest of this connection; null where one is to be signed even if it is the same again. */
  #challenge: string | null = null;
  #isSigning = false;
  #sentId: string | null = null;
  #isKnown = false;

  constructor(parts: LoginParts) {
    this.#parts = parts;
    this.#budget = this.#fullBudget();
  }

  /** Whether what is refused for want of a login may be let through after it. */
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

  /** False for one too many. */
  challenged(challenge: string): boolean {
    if (challenge === this.#challenge || this.#budget.take() > 0) return false;
    this.#challenge = challenge;
    const { authenticate } = this.#parts;
    // Not waited for: a remote signer may take its time, and may be asked over this relay.
    if (authenticate && !this.#isSigning) void this.#sign(authenticate);
    return true;
  }

  /** Whether the answer is to a login. */
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
