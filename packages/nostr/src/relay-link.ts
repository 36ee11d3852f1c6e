import type { Clock } from './troupe.ts';
import type { Filter, SignedEvent } from './nostr-event.ts';
import {
  DEFAULT_FAULT_LIMITS,
  type Fault,
  type FaultLimits,
  type Refused,
  RelayFaults,
} from './relay-faults.ts';
import { type FollowHandlers, RelayChannel } from './relay-channel.ts';
import type { Authenticate, Published } from './relay-publishes.ts';
import { DEFAULT_TIMING, type SocketTiming } from './relay-socket.ts';

export type { Authenticate, FollowHandlers, Published };

export interface RelayStatus {
  url: string;
  /** `waiting`: for the next attempt to connect. `isolated`: not connected for a time, because of its faults. */
  state: 'connecting' | 'open' | 'waiting' | 'isolated' | 'closed';
  /** Time of the last connection, ms. */
  connectedAt: number | null;
  /** Events received by this process. */
  received: number;
  /** Refused events and other frames, by reason. */
  rejected: Partial<Record<Refused, number>>;
  isolations: number;
  lastError: string | null;
}

/** One relay. Operations survive lost connections, and may then happen twice. */
export interface RelayLink {
  readonly url: string;
  status(): RelayStatus;
  /** Subscribes until the returned function is called. `filters` is called for each connection. */
  follow(filters: () => Filter[], handlers: FollowHandlers): () => void;
  /** The stored events of the relay, unchecked. Rejects if it cannot be reached or does not answer. */
  query(filter: Filter, options?: { timeoutMs?: number; limit?: number }): Promise<unknown[]>;
  /** Never rejects: a failure is a refusal whose reason starts with `error: ` or `unanswered: `. */
  publish(event: SignedEvent, options?: { timeoutMs?: number }): Promise<Published>;
  /** Counts an event that its reader refused. Too many isolate the relay. */
  refuse(reason: Refused): void;
  close(): Promise<void>;
}

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
 * A relay over `ws`. The relay of nostr-tools does not fit: it parses everything, queues without a bound, drops invalid
 * events silently, and stores its verdicts on the objects. Here a relay is not trusted:
 * 1. Size and depth of a message are checked before it is parsed. Signatures are not verified here.
 * 2. Subscriptions have a connection of their own, which is read no faster than events are handled. Queries and publishing
 *    have another, so that a flood delays neither.
 * 3. A relay that lies, floods or stalls is isolated: no connection for a growing time, with one warning each time.
 */
export function openRelayLink(url: string, options: RelayLinkOptions): RelayLink {
  const { clock, onWarning } = options;
  const faults = new RelayFaults({ ...DEFAULT_FAULT_LIMITS, ...options.faults }, clock);
  const followed = new Map<symbol, { filters: () => Filter[]; handlers: FollowHandlers }>();
  const { counted = () => {} } = options;
  const rejected: RelayStatus['rejected'] = {};
  const closing = new AbortController();
  const leaving = new Set<Promise<void>>();
  let stream: RelayChannel | null = null;
  let calls: RelayChannel | null = null;
  let connectedAt: number | null = null;
  let lastError: string | null = null;
  let isIsolated = false;
  let isolations = 0;
  let failures = 0;
  let received = 0;

  function openChannel(): RelayChannel {
    const channel: RelayChannel = new RelayChannel({
      url,
      clock,
      random: options.random,
      timing: { ...DEFAULT_TIMING, ...options.timing },
      maxEventBytes: options.maxEventBytes ?? MAX_EVENT_BYTES,
      authenticate: options.authenticate ?? null,
      opened() {
        connectedAt = clock.now();
        failures = 0;
      },
      lost(why) {
        lastError = why;
        failures += 1;
        if (failures === WORTH_A_WARNING) warn(`cannot be reached: ${why}`);
      },
      received() {
        received += 1;
        counted(null);
      },
      refused: refuse,
      throttled: (ms) => blame(faults.throttled(ms)),
      stalled: () => blame(faults.stalled()),
      answered: () => faults.answered(),
    });
    return channel;
  }

  function warn(what: string): void {
    onWarning(new Error(`the relay ${url} ${what}`), 'nostr');
  }

  function refuse(reason: Refused): void {
    rejected[reason] = (rejected[reason] ?? 0) + 1;
    counted(reason);
    blame(faults.refused(reason));
  }

  function blame(fault: Fault | null): void {
    if (!fault || isIsolated || closing.signal.aborted) return;
    const ms = faults.isolate();
    isIsolated = true;
    isolations += 1;
    lastError = `it ${fault}`;
    warn(`${fault} and is left alone for ${Math.ceil(ms / 1_000)} s`);
    letGo();
    void clock.sleep(ms, closing.signal).then(() => {
      isIsolated = false;
      if (!closing.signal.aborted && followed.size > 0) startStream();
    });
  }

  function letGo(): void {
    for (const channel of [stream, calls]) {
      const left = channel?.close().finally(() => leaving.delete(left as Promise<void>));
      if (left) leaving.add(left);
    }
    stream = null;
    calls = null;
  }

  function startStream(): void {
    stream = openChannel();
    for (const { filters, handlers } of followed.values()) stream.follow(filters, handlers);
  }

  function stateNow(): RelayStatus['state'] {
    if (closing.signal.aborted) return 'closed';
    if (isIsolated) return 'isolated';
    if (stream?.isOpen || calls?.isOpen) return 'open';
    return failures > 0 ? 'waiting' : 'connecting';
  }

  const unavailable = () =>
    closing.signal.aborted ? 'error: closed' : isIsolated ? 'error: isolated' : null;

  return {
    url,
    status: () => ({
      url,
      state: stateNow(),
      connectedAt,
      received,
      rejected: { ...rejected },
      isolations,
      lastError,
    }),
    follow(filters, handlers) {
      const key = Symbol('follow');
      followed.set(key, { filters, handlers });
      let stop = () => {};
      if (stream) stop = stream.follow(filters, handlers);
      else if (!unavailable()) startStream();
      return () => {
        followed.delete(key);
        stop();
        if (followed.size > 0 || !stream) return;
        const left = stream.close().finally(() => leaving.delete(left));
        leaving.add(left);
        stream = null;
      };
    },
    async query(filter, { timeoutMs = ANSWER_MS, limit = QUERY_LIMIT } = {}) {
      const why = unavailable();
      if (why) throw new Error(`${url} is not asked: ${why}`);
      calls ??= openChannel();
      return calls.query(filter, { timeoutMs, limit });
    },
    async publish(event, { timeoutMs = ANSWER_MS } = {}) {
      const why = unavailable();
      if (why) return { accepted: false, reason: why };
      calls ??= openChannel();
      return calls.publish(event, timeoutMs);
    },
    refuse,
    async close() {
      closing.abort();
      letGo();
      await Promise.all(leaving);
    },
  };
}
