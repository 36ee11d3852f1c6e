import { WebSocket } from 'ws';
import type { Clock, TokenBucket } from './troupe.ts';

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
 * Handles the messages of one connection one at a time, in order. While one is handled, or after too many, the socket is
 * not read: further messages stay in the buffers of the kernel, then in those of the sender. Without compression, at most
 * one chunk of the socket has been read ahead.
 */
export class Inflow {
  readonly #parts: InflowParts;
  readonly #ended = new AbortController();
  #queue: Buffer[] = [];
  #isBusy = false;

  constructor(parts: InflowParts) {
    this.#parts = parts;
  }

  /** True while the socket may be unread: silence is then no sign of a stalled relay. */
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
