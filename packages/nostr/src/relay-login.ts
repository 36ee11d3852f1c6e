import { type Clock, TokenBucket } from './troupe.ts';
import type { SignedEvent } from './nostr-event.ts';

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
/** One more challenge a minute: a signer may have been unavailable. */
const PER_SECOND = 1 / 60;

/**
 * Logs in to a relay. A challenge is free for the relay and costs us a signature, perhaps by a remote signer:
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

  /** Returns false for a repeated challenge or one too many. */
  challenged(challenge: string): boolean {
    if (challenge === this.#challenge || this.#budget.take() > 0) return false;
    this.#challenge = challenge;
    const { authenticate } = this.#parts;
    // Not awaited: a remote signer may be slow, or be reached over this relay.
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
