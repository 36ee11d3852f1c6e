import { Cluster, Redis } from 'ioredis';
import type { Broadcast, Notice } from '../broadcast.ts';
import { createListeners } from '../in-process-broadcast.ts';
import { createNoticeOutbox, decodeNotices, encodeNotices, isFrom } from '../notice-outbox.ts';
import { afterMs, endConnection, luaScript, type RedisClient } from './connect-redis.ts';
import { createOutage, type Outage } from './outage.ts';

export interface RedisBroadcastOptions {
  /** Connection for publishing. It is shared: `close` leaves it open. */
  publisher: RedisClient;
  /** A new connection for listening that reconnects without end; `close` ends it. */
  connectSubscriber: () => RedisClient;
  /** Prefix of all keys and channels of one troupe. */
  prefix: string;
  /** Identifies this member. */
  process: string;
  onWarning: (error: unknown, where: string) => void;
  /** How long deltas, activities, states and answers to recalls wait to be joined. */
  coalesceMs?: number;
  /** Redis counts as unavailable when a message takes longer. */
  stallMs?: number;
  /** Time between two checks of the listening connection. */
  pingMs?: number;
  /** Most characters of waiting deltas, activities and answers to recalls. */
  maxPendingChars?: number;
}

export interface RedisBroadcast extends Broadcast {
  /** Resolves when it listens for the first time. */
  listening(): Promise<void>;
  /** Accepted messages; notices dropped because Redis was unavailable or slow; unreadable messages and notices. */
  counts(): { sent: number; dropped: number; malformed: number };
}

const CLOSE_WAIT_MS = 500;
const PING_MS = 10_000;
/** Notices that may come often, or be large. */
const WAITING: ReadonlySet<Notice['type']> = new Set(['delta', 'activity', 'state', 'recalled']);

/**
 * Notices over Redis pub/sub, on one channel per troupe. Nothing is stored, here or there.
 *  P1  At most one message is under way. Notices that come meanwhile wait in the outbox and are joined there.
 *  P2  Deltas, activities, states and answers to recalls wait `coalesceMs`. Everything else is sent at once, together with what came before it.
 *  P3  While Redis is unavailable (no connection, or a message under way longer than `stallMs`) notices are dropped.
 *  P4  It subscribes whenever its connection becomes ready. It also pings: a connection that only listens would not notice
 *      that the other end is gone, but its socket timeout notices a ping without an answer.
 */
export function createRedisBroadcast(options: RedisBroadcastOptions): RedisBroadcast {
  const { process: from, onWarning } = options;
  const channel = `${options.prefix}:notices`;
  const listeners = createListeners(onWarning);
  const closing = new AbortController();
  const outage = createOutage(onWarning, {
    where: 'broadcast',
    away: 'Redis is unavailable: other processes do not hear of new events and live text; nothing is lost',
    back: 'Redis is back: other processes hear of new events and live text again',
  });
  const sender = createSender({ ...options, channel, outage, signal: closing.signal });
  const subscriber = options.connectSubscriber();
  const echo = subscriber instanceof Cluster ? createEcho(subscriber, `${channel}:${from}`) : null;
  const firstListening = Promise.withResolvers<void>();
  let malformed = 0;

  async function listen(): Promise<void> {
    try {
      await subscriber.subscribe(...(echo ? [channel, echo.channel] : [channel]));
      outage.end('listening');
      firstListening.resolve();
    } catch (error) {
      if (!closing.signal.aborted) outage.begin('listening', error);
    }
  }

  function receive(text: string): void {
    if (isFrom(text, from)) return;
    const message = decodeNotices(text);
    const unreadable = message?.malformed ?? 1;
    if (unreadable > 0 && malformed === 0)
      onWarning(
        `the channel ${channel} has messages that are not notices; all such are ignored`,
        'broadcast',
      );
    malformed += unreadable;
    if (closing.signal.aborted || !message || message.from === from) return;
    for (const notice of message.notices) listeners.notify(notice);
  }

  // ioredis would subscribe too, and leave a rejection unhandled when the connection is lost meanwhile.
  if (subscriber instanceof Redis) subscriber.options.autoResubscribe = false;
  let lastError: unknown = new Error('connection closed');
  subscriber.on('error', (error) => (lastError = error));
  subscriber.on('close', () => {
    if (!closing.signal.aborted) outage.begin('listening', lastError);
  });
  subscriber.on('ready', () => void listen());
  subscriber.on('message', (at: string, text: string) =>
    echo && at === echo.channel ? echo.heard() : receive(text),
  );
  if (subscriber.status === 'ready') void listen();
  // A lazy connection; its failure arrives as `close` too.
  else if (subscriber.status === 'wait') void subscriber.connect().catch(() => {});
  const pings = setInterval(() => {
    if (subscriber.status !== 'ready') return;
    if (echo) echo.check();
    else subscriber.ping().catch(() => {});
  }, options.pingMs ?? PING_MS).unref();

  return {
    publish: sender.publish,
    subscribe: listeners.add,
    listening: () => firstListening.promise,
    counts: () => ({ ...sender.counts(), malformed }),
    async close() {
      if (closing.signal.aborted) return;
      closing.abort();
      clearInterval(pings);
      listeners.clear();
      await sender.flush();
      endConnection(subscriber);
    },
  };
}

const PUBLISH = luaScript("return redis.call('PUBLISH', ARGV[1], ARGV[2])");

/**
 * In a Cluster ioredis would publish at any node, and what two nodes pass on may overtake each other. A script with a key is
 * always run by the primary that has it, which keeps the order.
 */
function publishIn(publisher: RedisClient, prefix: string, channel: string, text: string): Promise<unknown> {
  if (publisher instanceof Redis) return publisher.publish(channel, text);
  return PUBLISH.run(publisher, [`{${prefix}}`], [channel, text]);
}

/** Checks that what is published in a Cluster arrives (P4). */
function createEcho(subscriber: Cluster, channel: string) {
  let isAwaited = false;
  return {
    channel,
    heard: () => void (isAwaited = false),
    check(): void {
      if (isAwaited) {
        isAwaited = false;
        subscriber.disconnect(true);
      } else {
        subscriber.publish(channel, '').then(
          () => {},
          // Not published, so not awaited.
          () => void (isAwaited = false),
        );
        isAwaited = true;
      }
    },
  };
}

type SenderOptions = RedisBroadcastOptions & { channel: string; outage: Outage; signal: AbortSignal };

/** The publishing side (P1 to P3). */
function createSender(options: SenderOptions) {
  const { publisher, channel, outage, signal, coalesceMs = 50, stallMs = 5_000 } = options;
  const outbox = createNoticeOutbox({ maxChars: options.maxPendingChars ?? 1_000_000 });
  const counts = { sent: 0, dropped: 0 };
  let timer: NodeJS.Timeout | null = null;
  let sending: Promise<void> | null = null;
  let sendsSoon = false;
  let isStalled = false;

  function publish(notice: Notice): void {
    if (signal.aborted) return;
    if (isStalled) return void (counts.dropped += 1);
    outbox.add(notice);
    if (WAITING.has(notice.type)) {
      timer ??= setTimeout(sendWaiting, coalesceMs);
    } else if (!sendsSoon) {
      sendsSoon = true;
      queueMicrotask(send);
    }
  }

  function sendWaiting(): void {
    if (timer) clearTimeout(timer);
    timer = null;
    sendsSoon = true;
    send();
  }

  function send(): void {
    if (sending) return;
    sendsSoon = false;
    if (outbox.isEmpty()) return;
    const notices = outbox.take();
    if (publisher.status !== 'ready') return drop(notices, new Error(`connection is ${publisher.status}`));
    const stall = setTimeout(() => {
      isStalled = true;
      drop(outbox.take(), new Error(`no answer for ${stallMs} ms`));
    }, stallMs).unref();
    sending = publishIn(publisher, options.prefix, channel, encodeNotices(options.process, notices)).then(
      () => {
        counts.sent += 1;
        outage.end('publishing');
      },
      (error: unknown) => drop(notices, error),
    );
    void sending.finally(() => {
      clearTimeout(stall);
      sending = null;
      isStalled = false;
      if (sendsSoon) send();
    });
  }

  function drop(notices: readonly Notice[], error: unknown): void {
    counts.dropped += notices.length;
    outage.begin('publishing', error);
  }

  /** Sends what waits; returns when it is sent, but soon in any case. */
  async function flush(): Promise<void> {
    sendWaiting();
    if (sending) await Promise.race([sending, afterMs(CLOSE_WAIT_MS)]);
  }

  return {
    publish,
    flush,
    counts: () => ({ sent: counts.sent, dropped: counts.dropped + outbox.dropped() }),
  };
}
