import { WebSocket } from 'ws';
import { type Clock, TokenBucket } from './troupe.ts';
import { type Frame, readFrame } from './read-frame.ts';
import { Inflow } from './intake.ts';

export interface SocketTiming {
  handshakeMs: number;
  /** Pause between pings. A connection on which nothing is heard from one to the next is cut. */
  quietMs: number;
  /** Pause after a lost connection: doubles from `first` to `most`, and is jittered. */
  retryMs: { first: number; most: number };
  /** Over so many frames a second the socket is not read; the burst is ten times that. */
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
  /** The next frame is read when this has resolved. */
  frame(frame: Frame, bytes: number): void | Promise<void>;
  /** `isTooLong`: the relay says that a message of ours was. */
  lost(why: string, how: { wasStalled: boolean; isTooLong: boolean }): void;
  /** For so long the socket was not read, because too much came. */
  throttled(ms: number): void;
}

/** A connection that has lasted so long has not failed: the next pause is the first again. */
const SETTLED_MS = 30_000;
/** RFC 6455: the code with which a connection is closed over the length of a message. */
const TOO_LONG = 1009;
/**
 * Longer messages end the connection before they are read, and a relay would send them on the next one too. So it is far
 * beyond what relays store, or anybody could stop one with a long event; what is longer than an event may be is refused
 * by itself, unparsed. One such message is in memory at a time.
 */
const MAX_PAYLOAD_BYTES = 16_777_216;

/**
 * A connection to a relay that is made again when it is lost.
 * 1. Frames are handed over one at a time, in order; what a relay sends beyond that is not read (see Inflow).
 * 2. A relay that is not read is not taken for a stalled one.
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

  /** False where there is no connection: nothing is kept. */
  send(frame: unknown[]): boolean {
    if (!this.isOpen) return false;
    this.#socket?.send(JSON.stringify(frame), () => {});
    return true;
  }

  /** Ends the present connection; the next one follows. */
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

  /** Resolves when the connection has ended, or could not be made. */
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
        const told = why || (isStalled ? 'it says nothing' : said || `closed with code ${code}`);
        // With an error of our own the code is ours, sent back.
        const isTooLong = code === TOO_LONG && why === '';
        if (!this.#closing.signal.aborted) this.#parts.lost(told, { wasStalled: isStalled, isTooLong });
        resolve();
      });
    });
  }

  /** Resolves with whether the relay has fallen silent. */
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
