import { Cluster, Redis } from 'ioredis';
import type { Broadcast } from '../broadcast.ts';
import { createListeners } from '../in-process-broadcast.ts';
import { decodeNotices, isFrom, createNoticeSender } from '../notice-outbox.ts';
import { endConnection, luaScript, type RedisClient } from './connect-redis.ts';
import { createOutage } from '../outage.ts';

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
  /** How long notes of turns and answers to recalls wait to be joined, ms. */
  coalesceMs?: number;
  /** Redis counts as unavailable when a message takes longer. */
  stallMs?: number;
  /** Time between two checks of the listening connection. */
  pingMs?: number;
  /** Most characters of waiting notes and answers to recalls. */
  maxPendingChars?: number;
}

interface RedisBroadcast extends Broadcast {
  /** Resolves when it listens for the first time. */
  listening(): Promise<void>;
  /** Accepted messages; notices dropped because Redis was unavailable or slow; unreadable messages and notices. */
  counts(): { sent: number; dropped: number; malformed: number };
}

const PING_MS = 10_000;
const OUTAGE = {
  where: 'broadcast',
  away: 'Redis is unavailable: other processes do not hear of new events and live text; nothing is lost',
  back: 'Redis is back: other processes hear of new events and live text again',
};

/**
 * Notices over Redis pub/sub, on one channel per troupe. Nothing is stored, here or in Redis.
 * `notice-outbox.ts` has P1 to P3, about publishing.
 *  P4  It subscribes whenever its connection becomes ready. It also pings: a connection that only listens would not detect
 *      that the other end is gone, but its socket timeout detects a ping without an answer.
 */
export function createRedisBroadcast(options: RedisBroadcastOptions): RedisBroadcast {
  const { process: from, publisher, prefix, onWarning } = options;
  const channel = `${prefix}:notices`;
  const listeners = createListeners(onWarning);
  const closing = new AbortController();
  const outage = createOutage(onWarning, OUTAGE);
  const sender = createNoticeSender({
    ...options,
    send: (text) => publishIn(publisher, prefix, channel, text),
    whyNot: () => (publisher.status === 'ready' ? null : `connection is ${publisher.status}`),
    outage,
    signal: closing.signal,
  });
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
 * In a Cluster ioredis would publish at any node, and messages of two nodes may overtake each other. A script with a
 * key always runs at the primary that has the key, which keeps the order.
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
          // Not published, so no echo is awaited.
          () => void (isAwaited = false),
        );
        isAwaited = true;
      }
    },
  };
}
