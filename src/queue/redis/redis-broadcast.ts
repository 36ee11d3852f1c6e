import type { Redis } from 'ioredis';
import type { Broadcast, Notice } from '../broadcast.ts';
import { createListeners } from '../in-process-broadcast.ts';
import { createNoticeOutbox, decodeNotices, encodeNotices, isFrom } from '../notice-outbox.ts';
import { endConnection } from './connect-redis.ts';
import { createOutage } from './outage.ts';

export interface RedisBroadcastOptions {
  /** Connection for publishing. It is shared: `close` leaves it open. */
  publisher: Redis;
  /** A connection of its own to listen on, one that reconnects without end; `close` ends it. */
  connectSubscriber: () => Redis;
  /** Prefix of all keys and channels of one troupe. */
  prefix: string;
  /** Identifies this member. */
  process: string;
  onWarning: (error: unknown, where: string) => void;
  /** How long deltas and states wait to be joined. */
  coalesceMs?: number;
  /** Redis counts as unavailable when a message takes longer. */
  stallMs?: number;
  /** Maximum length of waiting delta text. */
  maxPendingChars?: number;
}

export interface RedisBroadcast extends Broadcast {
  /** Resolves when it listens for the first time. */
  listening(): Promise<void>;
  counts(): BroadcastCounts;
}

export interface BroadcastCounts {
  /** Messages that Redis took. */
  sent: number;
  /** Notices given up because Redis was away or too slow. */
  dropped: number;
  /** Messages and notices that could not be read. */
  malformed: number;
}

const CLOSE_WAIT_MS = 500;
const PING_MS = 10_000;

/**
 * Notices over Redis pub/sub, on one channel a troupe. Nothing is stored, here or there.
 *  P1  At most one message is under way; what comes meanwhile waits in the outbox and is joined there.
 *  P2  Deltas and states wait `coalesceMs`; everything else is sent at once, together with what came before it.
 *  P3  While Redis is away (no connection, or a message under way longer than `stallMs`) nothing waits: it is dropped.
 *  P4  It subscribes whenever its connection is ready, so a lost connection needs no one's help. A connection that
 *      only listens would not notice that the other end is gone: it pings, and its socket timeout does the rest.
 */
export function createRedisBroadcast(options: RedisBroadcastOptions): RedisBroadcast {
  const { publisher, process: from, onWarning } = options;
  const { coalesceMs = 50, stallMs = 5_000, maxPendingChars = 1_000_000 } = options;
  const channel = `${options.prefix}:notices`;
  const outbox = createNoticeOutbox({ maxChars: maxPendingChars });
  const listeners = createListeners(onWarning);
  const outage = createOutage(onWarning, {
    where: 'broadcast',
    away: 'Redis is away: other processes do not hear of new events and live text until it is back; nothing is lost',
    back: 'Redis is back: other processes hear of new events and live text again',
  });
  const subscriber = options.connectSubscriber();
  const firstListening = Promise.withResolvers<void>();
  const counts: BroadcastCounts = { sent: 0, dropped: 0, malformed: 0 };
  let timer: NodeJS.Timeout | null = null;
  let sendSoon = false;
  let sending: Promise<void> | null = null;
  let stalled = false;
  let closed = false;

  function publish(notice: Notice): void {
    if (closed) return;
    if (stalled) return void (counts.dropped += 1);
    outbox.add(notice);
    if (notice.type !== 'delta' && notice.type !== 'state') {
      if (!sendSoon) queueMicrotask(send);
      sendSoon = true;
    } else timer ??= setTimeout(whenCoalesced, coalesceMs);
  }

  function whenCoalesced(): void {
    timer = null;
    sendSoon = true;
    send();
  }

  function send(): void {
    if (sending) return;
    sendSoon = false;
    if (outbox.isEmpty()) return;
    const notices = outbox.take();
    if (publisher.status !== 'ready') return giveUp(notices, new Error(`connection is ${publisher.status}`));
    const stall = setTimeout(() => {
      stalled = true;
      giveUp(outbox.take(), new Error(`no answer for ${stallMs} ms`));
    }, stallMs).unref();
    sending = publisher.publish(channel, encodeNotices(from, notices)).then(
      () => {
        counts.sent += 1;
        outage.end('publishing');
      },
      (error: unknown) => giveUp(notices, error),
    );
    void sending.finally(() => {
      clearTimeout(stall);
      sending = null;
      stalled = false;
      if (sendSoon) send();
    });
  }

  function giveUp(notices: readonly Notice[], error: unknown): void {
    counts.dropped += notices.length;
    outage.begin('publishing', error);
  }

  async function listen(): Promise<void> {
    try {
      await subscriber.subscribe(channel);
      outage.end('listening');
      firstListening.resolve();
    } catch (error) {
      if (!closed) outage.begin('listening', error);
    }
  }

  function hear(text: string): void {
    if (isFrom(text, from)) return;
    const message = decodeNotices(text);
    const malformed = message?.malformed ?? 1;
    if (malformed > 0 && counts.malformed === 0) {
      onWarning(
        `the channel ${channel} brought what is no notice; it is ignored, as is all such`,
        'broadcast',
      );
    }
    counts.malformed += malformed;
    if (closed || !message || message.from === from) return;
    for (const notice of message.notices) listeners.notify(notice);
  }

  async function close(): Promise<void> {
    if (closed) return;
    closed = true;
    if (timer) clearTimeout(timer);
    clearInterval(pings);
    listeners.clear();
    sendSoon = true;
    send();
    if (sending) await Promise.race([sending, afterMs(CLOSE_WAIT_MS)]);
    endConnection(subscriber);
  }

  // It would subscribe on its own too, and leave a rejection unhandled where the connection is lost meanwhile.
  subscriber.options.autoResubscribe = false;
  let lastError: unknown = new Error('connection closed');
  subscriber.on('error', (error) => (lastError = error));
  subscriber.on('close', () => {
    if (!closed) outage.begin('listening', lastError);
  });
  subscriber.on('ready', () => void listen());
  subscriber.on('message', (_channel, text) => hear(text));
  if (subscriber.status === 'ready') void listen();
  // One that connects lazily; a failure comes as `close` too.
  else if (subscriber.status === 'wait') void subscriber.connect().catch(() => {});

  const pings = setInterval(() => {
    if (subscriber.status === 'ready') subscriber.ping().catch(() => {});
  }, PING_MS).unref();

  return {
    publish,
    subscribe: listeners.add,
    close,
    listening: () => firstListening.promise,
    counts: () => ({ ...counts, dropped: counts.dropped + outbox.dropped() }),
  };
}

function afterMs(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
