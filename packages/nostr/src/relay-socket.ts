import { WebSocket } from 'ws';
import { type Clock, TokenBucket } from './troupe.ts';
import { type Frame, readFrame } from './read-frame.ts';
import { Inflow } from './inflow.ts';

export interface SocketTiming {
  handshakeMs: number;
  /** Pause between pings. A connection that is silent from one ping to the next is cut. */
  quietMs: number;
  /** Pause after a lost connection: doubles from `first` to `most`, with jitter. */
  retryMs: { first: number; most: number };
  /** Frames read a second; the burst is ten times that. */
  framesPerSecond: number;
}

export const DEFAULT_TIMING: SocketTiming = {
  handshakeMs: 10_000,
  quietMs: 30_000,
  retryMs: { first: 1_000, most: 300_000 },
  framesPerSecond: 1_000,
};

export interface SocketParts {
  url: string;
  clock: Clock;
  random: () => number;
  timing: SocketTiming;
  maxEventBytes: number;
  opened(): void;
  /** The next frame is read after this has resolved. */
  frame(frame: Frame, bytes: number): void | Promise<void>;
  /** `isTooLong`: the relay closed it because our message was too long. */
  lost(why: string, how: { wasStalled: boolean; isTooLong: boolean }): void;
  /** The socket was not read for `ms`: the relay sends too much. */
  throttled(ms: number): void;
}

/** A connection that lasted this long counts as no failure: the next pause is the first again. */
const SETTLED_MS = 30_000;
/** RFC 6455: close code for an overlong message. */
const TOO_LONG = 1009;
/**
 * A longer message ends the connection, and the relay would send it again over the next one. The limit is therefore far
 * above what relays store: else one long event could block a relay. Messages longer than `maxEventBytes` are refused
 * unparsed. At most one such message is in memory.
 */
const MAX_PAYLOAD_BYTES = 16_777_216;

/**
 * A connection to a relay that reconnects when it is lost.
 * 1. Frames are handled one at a time, in order; further frames are not read, see `Inflow`.
 * 2. A relay does not count as stalled while its socket is not being read.
 */
export class RelaySocket {
  readonly #parts: SocketParts;
  readonly #closing = new AbortController();
  #socket: WebSocket | null = null;
  #heardAt = 0;
  #failures = 0;
  readonly #bucket: TokenBucket;
  readonly #ended: Promise<void>;

  constructor(parts: SocketParts) {
    this.#parts = parts;
    const { framesPerSecond } = parts.timing;
    this.#bucket = new TokenBucket({
      perSecond: framesPerSecond,
      burst: framesPerSecond * 10,
      clock: parts.clock,
    });
    this.#ended = this.#run();
  }

  get isOpen(): boolean {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  /** Returns false without a connection; the frame is then dropped. */
  send(frame: unknown[]): boolean {
    if (!this.isOpen) return false;
    this.#socket?.send(JSON.stringify(frame), () => {});
    return true;
  }

  /** Ends the current connection. A new one follows. */
  cut(): void {
    this.#socket?.terminate();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#socket?.terminate();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { clock, random, timing } = this.#parts;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const since = clock.monotonic();
      await this.#connect();
      this.#failures = clock.monotonic() - since >= SETTLED_MS ? 0 : this.#failures + 1;
      const { first, most } = timing.retryMs;
      const pauseMs = Math.min(most, first * 2 ** Math.max(0, this.#failures - 1));
      await clock.sleep(pauseMs * (0.5 + random() / 2), signal);
    }
  }

  /** Resolves when the connection has ended or could not be opened. */
  #connect(): Promise<void> {
    const { url, timing, clock } = this.#parts;
    const ended = new AbortController();
    let isStalled = false;
    return new Promise((resolve) => {
      let why = '';
      const socket = new WebSocket(url, {
        perMessageDeflate: false,
        handshakeTimeout: timing.handshakeMs,
        maxPayload: Math.max(MAX_PAYLOAD_BYTES, this.#parts.maxEventBytes * 2),
        followRedirects: false,
      });
      this.#socket = socket;
      const inflow = new Inflow({
        socket,
        clock,
        bucket: this.#bucket,
        handle: (bytes) => this.#parts.frame(readFrame(bytes, this.#parts.maxEventBytes), bytes.byteLength),
        throttled: (ms) => this.#parts.throttled(ms),
      });
      socket.on('open', () => {
        this.#heardAt = clock.monotonic();
        this.#parts.opened();
        void this.#watch(socket, inflow, ended.signal).then((found) => {
          isStalled = found;
          if (found) socket.terminate();
        });
      });
      socket.on('message', (data) => {
        this.#heardAt = clock.monotonic();
        inflow.push(data as Buffer);
      });
      socket.on('pong', () => (this.#heardAt = clock.monotonic()));
      socket.on('error', (error) => (why = error.message));
      socket.on('close', (code, reason) => {
        ended.abort();
        inflow.end();
        this.#socket = null;
        const said = reason.toString().slice(0, 200);
        const cause = why || (isStalled ? 'it is silent' : said || `closed with code ${code}`);
        // After an error on our side the code is our own, echoed by the relay.
        const isTooLong = code === TOO_LONG && why === '';
        if (!this.#closing.signal.aborted) this.#parts.lost(cause, { wasStalled: isStalled, isTooLong });
        resolve();
      });
    });
  }

  /** Returns true if the relay has fallen silent. */
  async #watch(socket: WebSocket, inflow: Inflow, signal: AbortSignal): Promise<boolean> {
    const { clock, timing } = this.#parts;
    let askedAt: number | null = null;
    while (!signal.aborted) {
      await clock.sleep(timing.quietMs, signal);
      if (signal.aborted) break;
      if (inflow.isBusy) askedAt = null;
      else if (askedAt !== null && this.#heardAt < askedAt) return true;
      else {
        askedAt = clock.monotonic();
        socket.ping();
      }
    }
    return false;
  }
}
