import { Redis, type RedisOptions } from 'ioredis';
import { TroupeError } from '../../errors.ts';
import { createOutage } from './outage.ts';
import { createHash } from 'node:crypto';

/**
 * Connections to Redis in two profiles:
 *  producer  serves requests: while Redis is unavailable every command fails at once, so that no request waits.
 *  blocking  serves loops that have nothing else to do: commands wait until Redis is back.
 * Both reconnect without end. Each warns once that Redis is unavailable and once that it is back, not at each attempt.
 */
export type RedisProfile = 'producer' | 'blocking';

export const CONNECT_TIMEOUT_MS = 2_000;
const COMMAND_TIMEOUT_MS = 2_000;
/** How long ioredis waits for the server's side of a disconnect; it keeps the process alive meanwhile. */
const CUT_AFTER_MS = 200;
const RETRY_MIN_MS = 50;
const RETRY_MAX_MS = 2_000;
/** A silent connection counts as lost after this; longer than any blocking read. */
const SILENT_SOCKET_MS = 20_000;

const PROFILES = {
  producer: {
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    socketTimeout: SILENT_SOCKET_MS,
  },
  blocking: {
    maxRetriesPerRequest: null,
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SILENT_SOCKET_MS,
  },
} satisfies Record<RedisProfile, RedisOptions>;

export function connectRedis(
  url: string,
  { profile, onWarning }: { profile: RedisProfile; onWarning: (error: unknown, where: string) => void },
): Redis {
  const at = redisAddress(url);
  const redis = new Redis(url, {
    ...PROFILES[profile],
    disconnectTimeout: CUT_AFTER_MS,
    retryStrategy: (times) => Math.min(RETRY_MIN_MS * 2 ** Math.min(times - 1, 10), RETRY_MAX_MS),
    // After a failover the old primary answers READONLY: reconnect, and send the command again.
    reconnectOnError: (error) => (error.message.startsWith('READONLY') ? 2 : false),
  });
  const outage = createOutage(onWarning, {
    where: 'redis',
    away: `Redis at ${at} is unavailable; the ${profile} connection keeps trying`,
    back: `Redis at ${at} is back for the ${profile} connection`,
  });
  let cause: unknown = new Error('the connection was closed');
  redis.on('error', (error: unknown) => (cause = new Error(reason(error), { cause: error })));
  redis.on('reconnecting', () => outage.begin('connection', cause));
  redis.on('ready', () => outage.end('connection'));
  return redis;
}

/** A function, because the type checker does not see that the status changes during a wait. */
export function isReady(redis: Redis): boolean {
  return redis.status === 'ready';
}

/** Whether the connection becomes ready within `ms`. */
export function readyWithin(redis: Redis, ms: number): Promise<boolean> {
  if (isReady(redis)) return Promise.resolve(true);
  return new Promise((resolve) => {
    const settle = () => {
      clearTimeout(timer);
      redis.off('ready', settle);
      redis.off('end', settle);
      resolve(isReady(redis));
    };
    const timer = setTimeout(settle, ms);
    redis.once('ready', settle);
    redis.once('end', settle);
  });
}

/** Ends a connection for good, whatever its state, and fails its waiting commands. */
export function endConnection(redis: Redis): void {
  if (redis.status === 'end') return;
  const reconnecting = redis.status === 'reconnecting';
  redis.disconnect();
  if (!reconnecting) return;
  // Between two attempts ioredis only clears its timer: it emits no `end`, and queued commands wait for ever. Aborting a
  // new attempt ends it properly.
  redis.connect().catch(() => {});
  redis.disconnect();
}

/** Host, port and database: unlike the URL, safe to print. */
export function redisAddress(url: string): string {
  const { hostname, port, pathname } = parseRedisUrl(url);
  return `${hostname}:${port || '6379'}${pathname.length > 1 ? pathname : ''}`;
}

export function parseRedisUrl(url: string): URL {
  const parsed = URL.parse(url);
  if (!parsed || !['redis:', 'rediss:'].includes(parsed.protocol) || parsed.hostname === '') {
    throw new TroupeError(
      'config_invalid',
      'the Redis URL cannot be read: write redis://host:6379 or, with TLS, rediss://user:password@host:6379',
    );
  }
  return parsed;
}

/** When a name has several addresses, the error of a failed connection is an AggregateError without a message. */
export function reason(error: unknown): string {
  if (error instanceof AggregateError && error.message === '')
    return error.errors.map((each) => reason(each)).join(', ');
  return error instanceof Error ? error.message : 'the connection was closed';
}

/** Does not keep the process alive. */
export function afterMs(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}

/** A script that Redis runs as one step. Only its digest is sent, unless the server does not know it. */
export interface LuaScript {
  run(redis: Redis, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
}

export function luaScript(text: string): LuaScript {
  const digest = createHash('sha1').update(text).digest('hex');
  return {
    async run(redis, keys, args) {
      try {
        return await redis.evalsha(digest, keys.length, ...keys, ...args);
      } catch (error) {
        if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
        return redis.eval(text, keys.length, ...keys, ...args);
      }
    },
  };
}
