import { type Clock, TokenBucket } from './troupe.ts';
import type { SignedEvent } from './nostr-event.ts';

/** Signs who we are (NIP-42); null for nobody. */
export type Authenticate = (challenge: string, url: string) => Promise<SignedEvent | null>;

export interface LoginParts {
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
