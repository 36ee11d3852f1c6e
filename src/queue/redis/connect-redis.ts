import { createHash } from 'node:crypto';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { createOutage } from '../outage.ts';
import { type ClusterPlace, parseRedisUrl, redisAddress, type SentinelPlace } from './redis-url.ts';

/** A connection to one server, also to the primary that Sentinels name, or connections to the nodes of a Cluster. */
export type RedisClient = Redis | Cluster;

/**
 * Connections to Redis in two profiles:
 *  producer  serves requests: while Redis is unavailable every command fails at once, so that no request waits.
 *  blocking  serves loops that have nothing else to do: commands wait until Redis is back.
 * Both reconnect without end. Each warns once that Redis is unavailable and once that it is back, not at each attempt.
 * In a Cluster that is when no node answers, or no primary has the slots. While one primary is replaced, commands are sent
 * again: a request waits for `MOST_SENT.producer` attempts, a loop for a minute at least.
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
} satisfies Record<RedisProfile, ClientOptions>;

/** How often ioredis sends a command again in a Cluster: after 100 ms if a node is gone, at once if a slot has moved. */
const MOST_SENT: Record<RedisProfile, number> = { producer: 6, blocking: 1_200 };

export function connectRedis(
  url: string,
  { profile, onWarning }: { profile: RedisProfile; onWarning: (error: unknown, where: string) => void },
): RedisClient {
  const at = redisAddress(url);
  const redis = openRedis(
    url,
    {
      ...PROFILES[profile],
      disconnectTimeout: CUT_AFTER_MS,
      retryStrategy: (times) => Math.min(RETRY_MIN_MS * 2 ** Math.min(times - 1, 10), RETRY_MAX_MS),
      // After a failover the old primary answers READONLY: reconnect, and send the command again.
      reconnectOnError: (error) => (error.message.startsWith('READONLY') ? 2 : false),
    },
    MOST_SENT[profile],
  );
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

/** Options that all kinds of clients have. */
export type ClientOptions = Pick<
  RedisOptions,
  | 'autoResendUnfulfilledCommands'
  | 'commandTimeout'
  | 'connectTimeout'
  | 'disconnectTimeout'
  | 'enableOfflineQueue'
  | 'enableReadyCheck'
  | 'lazyConnect'
  | 'maxRetriesPerRequest'
  | 'protocol'
  | 'reconnectOnError'
  | 'retryStrategy'
  | 'socketTimeout'
>;

/** Opens the kind of client that the URL asks for. Throws `config_invalid`. */
export function openRedis(url: string, options: ClientOptions, mostSent = MOST_SENT.producer): RedisClient {
  const place = parseRedisUrl(url);
  if (place.kind === 'server') return new Redis(url, options);
  return place.kind === 'cluster' ? openCluster(place, options, mostSent) : openPrimary(place, options);
}

function openCluster({ hosts, login, isSecure }: ClusterPlace, options: ClientOptions, mostSent: number) {
  const { retryStrategy, reconnectOnError: _, enableOfflineQueue = true, lazyConnect, ...ofNodes } = options;
  return new Cluster(hosts, {
    enableOfflineQueue,
    ...(lazyConnect === undefined ? {} : { lazyConnect }),
    maxRedirections: mostSent,
    clusterRetryStrategy: (times) => retryStrategy?.(times) ?? null,
    redisOptions: { ...ofNodes, ...login, ...(isSecure ? { tls: {} } : {}) },
    // Certificates have the names of the nodes.
    ...(isSecure ? { dnsLookup: (name, done) => done(null, name) } : {}),
  });
}

function openPrimary(place: SentinelPlace, options: ClientOptions): Redis {
  const { hosts, login, isSecure, name, db, sentinelLogin } = place;
  return new Redis({
    ...options,
    ...login,
    ...sentinelLogin,
    sentinels: hosts,
    name,
    db,
    sentinelCommandTimeout: options.connectTimeout ?? CONNECT_TIMEOUT_MS,
    // Null would end the connection for good, even when the Sentinels answer and only the primary is away.
    sentinelRetryStrategy: (times) => options.retryStrategy?.(times) ?? null,
    ...(isSecure ? { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true } : {}),
  });
}

/** The servers that hold the keys: the primaries of a Cluster. */
export function primariesOf(redis: RedisClient): Redis[] {
  return redis instanceof Cluster ? redis.nodes('master') : [redis];
}

/** A function, because the type checker does not see that the status changes during a wait. */
export function isReady(redis: RedisClient): boolean {
  return redis.status === 'ready';
}

/** Whether the connection becomes ready within `ms`. */
export function readyWithin(redis: RedisClient, ms: number): Promise<boolean> {
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
export function endConnection(redis: RedisClient): void {
  if (redis.status === 'end') return;
  const reconnecting = redis.status === 'reconnecting';
  redis.disconnect();
  if (!reconnecting) return;
  // Between two attempts ioredis only clears its timer: it emits no `end`, and queued commands wait for ever. Aborting a
  // new attempt ends it properly.
  redis.connect().catch(() => {});
  redis.disconnect();
}

/** When a name has several addresses, the error of a failed connection is an AggregateError without a message. */
export function reason(error: unknown): string {
  if (error instanceof AggregateError && error.message === '')
    return error.errors.map((each) => reason(each)).join(', ');
  // Of a Cluster: "failed to refresh slots cache". Why is in the error of the last node.
  if (error instanceof Error && 'lastNodeError' in error && error.lastNodeError instanceof Error)
    return reason(error.lastNodeError);
  return error instanceof Error ? error.message : 'the connection was closed';
}

/** Does not keep the process alive. */
export function afterMs(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}

/** A script that Redis runs as one step. Only its digest is sent, unless the server does not know it. */
export interface LuaScript {
  run(redis: RedisClient, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
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
