import type { Clock } from './troupe.ts';
import type { SignedEvent } from './nostr-event.ts';
import type { RelayLogin } from './relay-login.ts';

export interface Published {
  accepted: boolean;
  /** The relay's reason, shortened. Ours start with `error: `, or `unanswered: ` if the relay answers only other requests. */
  reason: string;
}

/** Whether a relay has an event. `silent`: it did not answer. */
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
  /** Time of sending over the current connection; null if not sent over it yet. */
  sentAt: number | null;
  wasAuthenticated: boolean;
  /** No other event was under way meanwhile: a notice or a lost connection then concerns this one. */
  isAlone: boolean;
  notice: string;
  /** Ends the wait. */
  cut: AbortController;
}

/** No relay has a lower limit on messages. A connection that breaks over a shorter event has another reason. */
const LONG_CHARS = 16_384;
/** Timers may wake some milliseconds early. */
const MOST_OF_TIMEOUT = 0.9;
const NOT_CONNECTED: Published = { accepted: false, reason: 'error: not connected' };
const NO_ANSWER: Published = { accepted: false, reason: 'error: no answer' };
const TOO_LONG: Published = { accepted: false, reason: 'unanswered: the message is too long for the relay' };

/** The events under way to a relay, each until it is answered or times out. */
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

  /** Returns false if no such event is under way. `canAuthenticate`: a login may help. */
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

  /** Distinguishes silence about one event from a silent relay: no event is given up because a relay is away. */
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
