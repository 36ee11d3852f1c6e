import type { Clock, NostrStatus } from './troupe.ts';
import type { Filter, SignedEvent } from './nostr-event.ts';
import {
  DEFAULT_FAULT_LIMITS,
  type Fault,
  type FaultLimits,
  type Refused,
  RelayFaults,
} from './relay-faults.ts';
import { type FollowHandlers, RelayChannel, type Authenticate, type Published } from './relay-channel.ts';
import { DEFAULT_TIMING, type SocketTiming } from './relay-socket.ts';

export type { Authenticate, FollowHandlers, Published };

export type RelayStatus = Omit<NostrStatus['relays'][number], 'inbound' | 'outbox'>;

export interface RelayLinkOptions {
  clock: Clock;
  random: () => number;
  onWarning: (error: unknown, where: string) => void;
  authenticate?: Authenticate | undefined;
  /** Longer events are not parsed. Default 128 KiB. */
  maxEventBytes?: number | undefined;
  /** Called with null for each received event, and with the reason for each refused event or frame. */
  counted?: ((refused: Refused | null) => void) | undefined;
  timing?: Partial<SocketTiming> | undefined;
  faults?: Partial<FaultLimits> | undefined;
}

const MAX_EVENT_BYTES = 131_072;
const ANSWER_MS = 10_000;
const QUERY_LIMIT = 500;
/** Failed connections in a row before a warning. */
const WORTH_A_WARNING = 3;

/**
 * One relay, over `ws`. Requests survive lost connections, and may then take effect twice. The relay client of nostr-tools
 * does not fit: it parses everything, queues without bound, drops invalid events silently, and stores its verdicts on the
 * objects. Here a relay is not trusted:
 * 1. Size and depth of a message are checked before it is parsed. Signatures are not verified here.
 * 2. Subscriptions have a connection of their own, which is read no faster than events are handled. Queries and publishing
 *    have another, so that a flood delays neither.
 * 3. A relay that lies, floods or stalls is isolated: it gets no connection for a growing time, with one warning each time.
 */
export class RelayLink {
  readonly url: string;
  readonly #options: RelayLinkOptions;
  readonly #faults: RelayFaults;
  readonly #followed = new Map<symbol, { filters: () => Filter[]; handlers: FollowHandlers }>();
  readonly #closing = new AbortController();
  readonly #leaving = new Set<Promise<void>>();
  readonly #counts: Omit<RelayStatus, 'url' | 'state'> = {
    connectedAt: null,
    received: 0,
    rejected: {},
    isolations: 0,
    lastError: null,
  };
  /** For subscriptions. */
  #stream: RelayChannel | null = null;
  /** For queries and publishing. */
  #calls: RelayChannel | null = null;
  #isIsolated = false;
  #failures = 0;

  constructor(url: string, options: RelayLinkOptions) {
    this.url = url;
    this.#options = options;
    this.#faults = new RelayFaults({ ...DEFAULT_FAULT_LIMITS, ...options.faults }, options.clock);
  }

  status(): RelayStatus {
    const { url } = this;
    return { url, state: this.#state(), ...this.#counts, rejected: { ...this.#counts.rejected } };
  }

  /** Subscribes until the returned function is called. `filters` is called for each connection. */
  follow(filters: () => Filter[], handlers: FollowHandlers): () => void {
    const key = Symbol('follow');
    this.#followed.set(key, { filters, handlers });
    let stop = () => {};
    if (this.#stream) stop = this.#stream.follow(filters, handlers);
    else if (!this.#unavailable()) this.#startStream();
    return () => {
      this.#followed.delete(key);
      stop();
      if (this.#followed.size === 0) this.#stream = this.#leave(this.#stream);
    };
  }

  /** The stored events of the relay, unchecked. Rejects if it cannot be reached or does not answer. */
  async query(
    filter: Filter,
    { timeoutMs = ANSWER_MS, limit = QUERY_LIMIT }: { timeoutMs?: number; limit?: number } = {},
  ): Promise<unknown[]> {
    const why = this.#unavailable();
    if (why) throw new Error(`${this.url} cannot be queried: ${why}`);
    this.#calls ??= this.#openChannel();
    return this.#calls.query(filter, { timeoutMs, limit });
  }

  /** Never rejects: a failure is a refusal whose reason starts with `error: ` or `unanswered: `. */
  async publish(
    event: SignedEvent,
    { timeoutMs = ANSWER_MS }: { timeoutMs?: number } = {},
  ): Promise<Published> {
    const why = this.#unavailable();
    if (why) return { accepted: false, reason: why };
    this.#calls ??= this.#openChannel();
    return this.#calls.publish(event, timeoutMs);
  }

  /** Counts an event that its reader refused. Too many isolate the relay. */
  refuse(reason: Refused): void {
    const { rejected } = this.#counts;
    rejected[reason] = (rejected[reason] ?? 0) + 1;
    this.#options.counted?.(reason);
    this.#blame(this.#faults.refused(reason));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#leaveAll();
    await Promise.all(this.#leaving);
  }

  #openChannel(): RelayChannel {
    const { clock, random, timing, maxEventBytes = MAX_EVENT_BYTES, authenticate = null } = this.#options;
    const counts = this.#counts;
    return new RelayChannel({
      url: this.url,
      clock,
      random,
      timing: { ...DEFAULT_TIMING, ...timing },
      maxEventBytes,
      authenticate,
      opened: () => {
        counts.connectedAt = clock.now();
        this.#failures = 0;
      },
      lost: (why) => {
        counts.lastError = why;
        this.#failures += 1;
        if (this.#failures === WORTH_A_WARNING) this.#warn(`cannot be reached: ${why}`);
      },
      received: () => {
        counts.received += 1;
        this.#options.counted?.(null);
      },
      refused: (reason) => this.refuse(reason),
      throttled: (ms) => this.#blame(this.#faults.throttled(ms)),
      stalled: () => this.#blame(this.#faults.stalled()),
      answered: () => this.#faults.answered(),
    });
  }

  #warn(what: string): void {
    this.#options.onWarning(new Error(`the relay ${this.url} ${what}`), 'nostr');
  }

  #blame(fault: Fault | null): void {
    const { signal } = this.#closing;
    if (!fault || this.#isIsolated || signal.aborted) return;
    const ms = this.#faults.isolate();
    this.#isIsolated = true;
    this.#counts.isolations += 1;
    this.#counts.lastError = `it ${fault}`;
    this.#warn(`${fault} and is isolated for ${Math.ceil(ms / 1_000)} s`);
    this.#leaveAll();
    void this.#options.clock.sleep(ms, signal).then(() => {
      this.#isIsolated = false;
      if (!signal.aborted && this.#followed.size > 0) this.#startStream();
    });
  }

  #leaveAll(): void {
    this.#stream = this.#leave(this.#stream);
    this.#calls = this.#leave(this.#calls);
  }

  #leave(channel: RelayChannel | null): null {
    const left = channel?.close().finally(() => this.#leaving.delete(left as Promise<void>));
    if (left) this.#leaving.add(left);
    return null;
  }

  #startStream(): void {
    this.#stream = this.#openChannel();
    for (const { filters, handlers } of this.#followed.values()) this.#stream.follow(filters, handlers);
  }

  #state(): RelayStatus['state'] {
    if (this.#closing.signal.aborted) return 'closed';
    if (this.#isIsolated) return 'isolated';
    if (this.#stream?.isOpen || this.#calls?.isOpen) return 'open';
    return this.#failures > 0 ? 'waiting' : 'connecting';
  }

  #unavailable(): string | null {
    if (this.#closing.signal.aborted) return 'error: closed';
    return this.#isIsolated ? 'error: isolated' : null;
  }
}
