import {
  type Broadcast,
  createListeners,
  createNoticeSender,
  decodeNotices,
  type Outage,
  type Clock,
} from '../troupe.ts';
import { prepared, type QueueQueries } from './queue-database.ts';

interface PostgresBroadcastOptions {
  /** Shared with others, so `close` leaves it open. */
  database: QueueQueries;
  listener: PostgresListener;
  channel: string;
  /** Identifies this process among all senders. */
  process: string;
  outage: Outage;
  onWarning: (error: unknown, where: string) => void;
  /** See `notice-outbox.ts`. */
  coalesceMs?: number;
  stallMs?: number;
  maxPendingChars?: number;
}

const SEND = prepared(
  'SELECT pg_notify($1, part) FROM unnest($2::text[]) WITH ORDINALITY AS parts (part, number) ORDER BY number',
);

/**
 * Sends messages between processes with NOTIFY. A payload must have less than 8000 bytes, so a message is sent in parts. All
 * parts are sent in one transaction, which PostgreSQL delivers in order and not mixed with others. `notice-outbox.ts` has the
 * rules of publishing.
 */
export function createPostgresBroadcast(options: PostgresBroadcastOptions): Broadcast {
  const { database, listener, channel, process: me, outage, onWarning } = options;
  const listeners = createListeners(onWarning);
  const closing = new AbortController();
  const parts = createParts();
  const sender = createNoticeSender({
    ...options,
    send: (text) =>
      database.rows(SEND, [
        channel,
        partsOf(text).map((part, at, all) => `${me} ${at + 1}/${all.length} ${part}`),
      ]),
    outage,
    signal: closing.signal,
  });
  let isMalformedTold = false;

  function receive(payload: string): void {
    if (closing.signal.aborted || payload.startsWith(`${me} `)) return;
    const text = parts.join(payload);
    if (text === null) return;
    const message = decodeNotices(text);
    if ((message?.malformed ?? 1) > 0 && !isMalformedTold) {
      isMalformedTold = true;
      onWarning(
        `the channel ${channel} has messages that are not notices; all such are ignored`,
        'broadcast',
      );
    }
    if (!message || message.from === me) return;
    for (const notice of message.notices) listeners.notify(notice);
  }
  listener.on(channel, receive);

  return {
    publish: sender.publish,
    subscribe: listeners.add,
    async close() {
      if (closing.signal.aborted) return;
      closing.abort();
      listeners.clear();
      await sender.flush();
    },
  };
}

/** Characters of a part. Each takes three bytes at most, so a part with its number has less than 8000 bytes. */
const PART_CHARS = 2_600;

/** The parts of a text. A pair of surrogates is never split. */
export function partsOf(text: string): string[] {
  const parts: string[] = [];
  for (let from = 0; from < text.length;) {
    // Most texts are ASCII, so a part may have three times as many characters.
    let to = from + 3 * PART_CHARS;
    if (Buffer.byteLength(text.slice(from, to)) > 3 * PART_CHARS) to = from + PART_CHARS;
    if (/[\uD800-\uDBFF]/.test(text.charAt(to - 1))) to -= 1;
    parts.push(text.slice(from, to));
    from = to;
  }
  return parts;
}

const PART = /^\S{1,100} (\d{1,6})\/(\d{1,6}) /;
const MOST_PARTS = 2_000;

/** Joins the parts of one message at a time, because parts of two messages never mix. */
export function createParts() {
  let texts: string[] = [];
  return {
    /** Takes the next part. Returns the whole text with the last part; null if more parts follow or some are missing. */
    join(payload: string): string | null {
      const [head = '', number, count] = PART.exec(payload) ?? [];
      // The payload is not a part. The empty text is reported as malformed.
      if (head === '') return '';
      if (number === '1') texts = [];
      if (Number(number) !== texts.length + 1 || texts.length >= MOST_PARTS) return null;
      texts.push(payload.slice(head.length));
      if (number !== count) return null;
      const text = texts.join('');
      texts = [];
      return text;
    },
  };
}

interface Notification {
  channel: string;
  payload?: string | undefined;
}

/** A connection that is not pooled; `pg.Client` has this shape. */
interface ListenClient {
  connect(): Promise<unknown>;
  query(text: string): Promise<unknown>;
  on(event: 'notification', listener: (message: Notification) => void): unknown;
  on(event: 'error' | 'end', listener: (error?: Error) => void): unknown;
  end(): Promise<void>;
}

interface PostgresListenerOptions {
  connect: () => ListenClient;
  database: QueueQueries;
  channels: readonly string[];
  /** Identifies this process. */
  process: string;
  clock: Clock;
  outage: Outage;
  /** Called when it listens again after an interruption. The server may have lost its unlogged tables meanwhile. */
  onReturned?: () => void;
  pingMs?: number;
}

const PING_MS = 10_000;
const RETRY_FROM_MS = 100;
const RETRY_TO_MS = 5_000;
const PING = 'ping ';

/**
 * Listens on one connection. Listening alone reveals neither a lost connection nor a pooler that drops notifications. So every
 * `pingMs` a notification is sent over another connection, and must arrive before the next one.
 */
export class PostgresListener {
  readonly #options: PostgresListenerOptions;
  readonly #ping: string;
  readonly #pings = { sent: 0, heard: 0 };
  readonly #closing = new AbortController();
  readonly #listeners = new Map<string, (payload: string) => void>();
  readonly #first = Promise.withResolvers<void>();
  readonly #ended: Promise<void>;
  #client: ListenClient | null = null;
  #isHearing = false;
  #wasLost = false;

  constructor(options: PostgresListenerOptions) {
    this.#options = options;
    this.#ping = `${PING}${options.process} `;
    this.#ended = this.#listen();
  }

  on(channel: string, listener: (payload: string) => void): void {
    this.#listeners.set(channel, listener);
  }

  /** Whether notifications of other processes arrive. */
  isHearing(): boolean {
    return this.#isHearing;
  }

  /** Resolves when it listens for the first time. */
  listening(): Promise<void> {
    return this.#first.promise;
  }

  async #listen(): Promise<void> {
    const { clock } = this.#options;
    let pauseMs = RETRY_FROM_MS;
    while (!this.#isClosing) {
      const began = clock.monotonic();
      this.#lost(await this.#listenOnce());
      const isStable = clock.monotonic() - began > RETRY_TO_MS;
      pauseMs = isStable ? RETRY_FROM_MS : Math.min(2 * pauseMs, RETRY_TO_MS);
      await clock.sleep(pauseMs, this.#closing.signal);
    }
  }

  /** Listens until the connection is lost. Returns the reason. */
  async #listenOnce(): Promise<unknown> {
    const { connect, channels } = this.#options;
    const client = (this.#client = connect());
    const ended = Promise.withResolvers<unknown>();
    client.on('error', (error) => ended.resolve(error));
    client.on('end', () => ended.resolve(new Error('connection closed')));
    client.on('notification', (message) => this.#receive(message));
    const over = new AbortController();
    try {
      await client.connect();
      for (const channel of channels) await client.query(`LISTEN "${channel}"`);
      const deaf = this.#keepPinging(AbortSignal.any([over.signal, this.#closing.signal]));
      return await Promise.race([ended.promise, deaf]);
    } catch (error) {
      return error;
    } finally {
      over.abort();
      void client.end().catch(() => undefined);
    }
  }

  /** Sends pings. Resolves when one did not arrive. */
  async #keepPinging(signal: AbortSignal): Promise<Error> {
    const { database, channels, clock, pingMs = PING_MS } = this.#options;
    const [channel = ''] = channels;
    for (;;) {
      const number = (this.#pings.sent += 1);
      const send = database.rows({ text: 'SELECT pg_notify($1, $2)' }, [channel, `${this.#ping}${number}`]);
      const isSent = await send.then(
        () => true,
        // The ping could not be sent, because the server is unavailable or busy. That proves nothing about this connection.
        () => false,
      );
      await clock.sleep(pingMs, signal);
      if (signal.aborted) return new Error('closed');
      if (isSent && this.#pings.heard < number) return new Error('notifications do not arrive');
    }
  }

  #receive({ channel, payload = '' }: Notification): void {
    if (payload.startsWith(this.#ping)) this.#heard(Number(payload.slice(this.#ping.length)));
    else if (!payload.startsWith(PING)) this.#listeners.get(channel)?.(payload);
  }

  #heard(number: number): void {
    this.#pings.heard = number;
    if (this.#isHearing || this.#isClosing) return;
    this.#isHearing = true;
    this.#options.outage.end('listening');
    this.#first.resolve();
    if (this.#wasLost) this.#options.onReturned?.();
    this.#wasLost = false;
  }

  #lost(error: unknown): void {
    this.#isHearing = false;
    if (this.#isClosing) return;
    this.#wasLost = true;
    this.#options.outage.begin('listening', error);
  }

  get #isClosing(): boolean {
    return this.#closing.signal.aborted;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#listeners.clear();
    await this.#client?.end().catch(() => undefined);
    await this.#ended;
  }
}
