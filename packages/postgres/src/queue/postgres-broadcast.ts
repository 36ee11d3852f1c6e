import {
  type Broadcast,
  createListeners,
  createNoticeSender,
  decodeNotices,
  type Outage,
} from '../troupe.ts';
import type { PostgresListener } from './postgres-listener.ts';
import { prepared, type QueueQueries } from './queue-database.ts';

export interface PostgresBroadcastOptions {
  /** Shared: `close` leaves it open. */
  database: QueueQueries;
  listener: PostgresListener;
  channel: string;
  /** Identifies this member. */
  process: string;
  outage: Outage;
  onWarning: (error: unknown, where: string) => void;
  /** See `notice-sender.ts`. */
  coalesceMs?: number;
  stallMs?: number;
  maxPendingChars?: number;
}

const SEND = prepared(
  'SELECT pg_notify($1, part) FROM unnest($2::text[]) WITH ORDINALITY AS parts (part, number) ORDER BY number',
);

/**
 * Notices over NOTIFY. A payload has less than 8000 bytes, so a message is sent in parts: all in one transaction, which
 * PostgreSQL delivers in order and not mixed with others. `notice-sender.ts` has the rules of publishing.
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

/** Characters of a part, each of which takes three bytes at most: together with its number less than 8000 bytes. */
const PART_CHARS = 2_600;

/** Never splits a pair of surrogates. */
export function partsOf(text: string): string[] {
  const parts: string[] = [];
  for (let from = 0; from < text.length;) {
    // Most texts are ASCII.
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

/** Joins the parts of one message at a time: those of two never mix. */
export function createParts() {
  let texts: string[] = [];
  return {
    /** The whole text with its last part; null: more follow, or some are missing. */
    join(payload: string): string | null {
      const [head = '', number, count] = PART.exec(payload) ?? [];
      // Not a part: reported as malformed.
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
