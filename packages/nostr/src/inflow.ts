import { WebSocket } from 'ws';
import type { Clock, TokenBucket } from './troupe.ts';

export interface InflowParts {
  socket: WebSocket;
  clock: Clock;
  bucket: TokenBucket;
  /** The next message is handed over when this has resolved. */
  handle(bytes: Buffer): void | Promise<void>;
  throttled(ms: number): void;
}

const THROTTLE_MS = 50;

/**
 * The messages of one connection, one at a time and in order. While one is being dealt with, or too many came, the
 * socket is not read: what its sender has beyond that stays in the buffers of the kernel, and then in its own. Without
 * compression, what was read already is no more than one chunk of the socket.
 */
export class Inflow {
  readonly #parts: InflowParts;
  readonly #ended = new AbortController();
  #queue: Buffer[] = [];
  #isBusy = false;

  constructor(parts: InflowParts) {
    this.#parts = parts;
  }

  /** Whether the socket may be left unread at the moment: its silence means nothing then. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  push(bytes: Buffer): void {
    this.#queue.push(bytes);
    if (!this.#isBusy) void this.#drain();
  }

  /** What was not handed over yet is dropped. */
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
