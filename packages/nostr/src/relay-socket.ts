import { WebSocket } from 'ws';
import { type Clock, TokenBucket } from './troupe.ts';
import type { Refused } from './relay-faults.ts';

export interface SocketTiming {
  handshakeMs: number;
  /** Pause between pings, ms. A connection that is silent from one ping to the next is cut. */
  quietMs: number;
  /** Pause after a lost connection, ms: doubles from `first` to `most`, with jitter. */
  retryMs: { first: number; most: number };
  /** Frames read per second; the burst is ten times that. */
  framesPerSecond: number;
}

export const DEFAULT_TIMING: SocketTiming = {
  handshakeMs: 10_000,
  quietMs: 30_000,
  retryMs: { first: 1_000, most: 300_000 },
  framesPerSecond: 1_000,
};

interface SocketParts {
  url: string;
  clock: Clock;
  random: () => number;
  timing: SocketTiming;
  maxEventBytes: number;
  opened(): void;
  /** The next frame is read after this has resolved. */
  frame(frame: Frame, bytes: number): void | Promise<void>;
  /** `isTooLong`: the relay closed the connection because our message was too long. */
  lost(why: string, how: { wasStalled: boolean; isTooLong: boolean }): void;
  /** The socket was not read for `ms`: the relay sends too much. */
  throttled(ms: number): void;
}

/** A connection that lasted this long does not count as failed: the next pause is the first again. In ms. */
const SETTLED_MS = 30_000;
/** RFC 6455: close code for an overlong message. */
const TOO_LONG = 1009;
/**
 * A longer message ends the connection, and the relay would send it again over the next one. The limit is therefore far above
 * what relays store; otherwise one long event could block a relay. Messages longer than `maxEventBytes` are refused unparsed.
 * At most one such message is in memory.
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

  /** Returns whether the relay has fallen silent. */
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

interface InflowParts {
  socket: WebSocket;
  clock: Clock;
  bucket: TokenBucket;
  /** The next message is handled when this has resolved. */
  handle(bytes: Buffer): void | Promise<void>;
  throttled(ms: number): void;
}

const THROTTLE_MS = 50;

/**
 * Handles the messages of one connection one at a time, in order. While one is handled, or after too many, the socket is not
 * read: further messages stay in the buffers of the kernel, then in those of the sender. Without compression, at most one
 * chunk of the socket has been read ahead.
 */
class Inflow {
  readonly #parts: InflowParts;
  readonly #ended = new AbortController();
  #queue: Buffer[] = [];
  #isBusy = false;

  constructor(parts: InflowParts) {
    this.#parts = parts;
  }

  /** Whether the socket may be unread: silence is then no sign of a stalled relay. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  push(bytes: Buffer): void {
    this.#queue.push(bytes);
    if (!this.#isBusy) void this.#drain();
  }

  /** Drops the messages not yet handled. */
  end(): void {
    this.#queue = [];
    this.#ended.abort();
  }

  async #drain(): Promise<void> {
    this.#isBusy = true;
    for (let bytes = this.#queue.shift(); bytes; bytes = this.#queue.shift()) {
      while (this.#parts.bucket.take() > 0) await this.#throttle();
      if (this.#ended.signal.aborted) break;
      const handled = this.#parts.handle(bytes);
      if (!handled) continue;
      this.#pause();
      await handled;
    }
    this.#isBusy = false;
    const { socket } = this.#parts;
    if (socket.isPaused && socket.readyState === WebSocket.OPEN) socket.resume();
  }

  async #throttle(): Promise<void> {
    this.#pause();
    this.#parts.throttled(THROTTLE_MS);
    await this.#parts.clock.sleep(THROTTLE_MS, this.#ended.signal);
    if (this.#ended.signal.aborted) this.#queue = [];
  }

  #pause(): void {
    if (this.#parts.socket.readyState === WebSocket.OPEN) this.#parts.socket.pause();
  }
}

/** A relay's frame (NIP-01, NIP-42). Its content is not checked. */
export type Frame =
  | { type: 'EVENT'; sub: string; event: unknown }
  | { type: 'EOSE'; sub: string }
  | { type: 'CLOSED'; sub: string; reason: string }
  | { type: 'OK'; id: string; accepted: boolean; reason: string }
  | { type: 'NOTICE'; text: string }
  | { type: 'AUTH'; challenge: string }
  | { type: 'refused'; reason: Refused };

/** The deepest valid frame is `["EVENT",sub,{"tags":[[`. */
const MAX_DEPTH = 4;
/** Bytes of a frame in addition to its event. */
const ENVELOPE_BYTES = 512;
const MAX_TEXT = 500;

/** Checks size and depth before it parses the message. */
export function readFrame(bytes: Buffer, maxEventBytes: number): Frame {
  if (bytes.byteLength > maxEventBytes + ENVELOPE_BYTES) return { type: 'refused', reason: 'size' };
  if (isTooDeep(bytes)) return { type: 'refused', reason: 'depth' };
  let parsed: unknown;
  try {
    parsed = JSON.parse(bytes.toString('utf8'));
  } catch {
    return { type: 'refused', reason: 'json' };
  }
  return (Array.isArray(parsed) && frameOf(parsed)) || { type: 'refused', reason: 'frame' };
}

function frameOf([type, first, second, third]: unknown[]): Frame | null {
  if (typeof first !== 'string') return null;
  switch (type) {
    case 'EVENT':
      return { type, sub: first, event: second };
    case 'EOSE':
      return { type, sub: first };
    case 'CLOSED':
      return { type, sub: first, reason: textOf(second) };
    case 'OK':
      return typeof second === 'boolean'
        ? { type, id: first, accepted: second, reason: textOf(third) }
        : null;
    case 'NOTICE':
      return { type, text: first.slice(0, MAX_TEXT) };
    case 'AUTH':
      return { type, challenge: first.slice(0, MAX_TEXT) };
    default:
      return null;
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, MAX_TEXT) : '';
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function isTooDeep(bytes: Buffer): boolean {
  let depth = 0;
  let isText = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (isText) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) isText = false;
    } else if (byte === QUOTE) isText = true;
    else if (byte === 0x5b || byte === 0x7b) {
      depth += 1;
      if (depth > MAX_DEPTH) return true;
    } else if (byte === 0x5d || byte === 0x7d) depth -= 1;
  }
  return false;
}
