import { createHash } from 'node:crypto';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { createOutage, type Warn } from '../outage.ts';
import {
  type ClusterPlace,
  parseRedisUrl,
  redisAddress,
  type SentinelPlace,
  type RedisPlace,
} from './redis-url.ts';
import { TroupeError } from '../../base/errors.ts';

/** A connection to one server, also to the primary that Sentinels name, or connections to the nodes of a Cluster. */
export type RedisClient = Redis | Cluster;

/**
 * Connections to Redis in two profiles:
 *  producer  serves requests: while Redis is unavailable every command fails at once, so that no request waits.
 *  blocking  serves loops that have nothing else to do: commands wait until Redis is back.
 * Both reconnect without end. Each warns once that Redis is unavailable and once that it is back, not at each attempt.
 * A Cluster is unavailable if no node answers, or no primary has the slots. While one primary is replaced, commands are
 * sent again: for a request `MOST_SENT.producer` times, in a loop for at least a minute.
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
type ClientOptions = Pick<
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
    // Certificates are issued for the names of the nodes.
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
    // Null would end the connection for good, even if the Sentinels answer and only the primary is unavailable.
    sentinelRetryStrategy: (times) => options.retryStrategy?.(times) ?? null,
    ...(isSecure ? { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true } : {}),
  });
}

/** The servers that hold the keys: the primaries of a Cluster. */
export function primariesOf(redis: RedisClient): Redis[] {
  return redis instanceof Cluster ? redis.nodes('master') : [redis];
}

/** A function, because the type checker does not see that the status changes while the caller waits. */
export function isReady(redis: RedisClient): boolean {
  return redis.status === 'ready';
}

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
function reason(error: unknown): string {
  if (error instanceof AggregateError && error.message === '')
    return error.errors.map((each) => reason(each)).join(', ');
  // The error of a Cluster says "failed to refresh slots cache". The reason is in the error of the last node.
  if (error instanceof Error && 'lastNodeError' in error && error.lastNodeError instanceof Error)
    return reason(error.lastNodeError);
  return error instanceof Error ? error.message : 'the connection was closed';
}

/** A timer that does not keep the process alive. */
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

/**
 * The check of a Redis before anything relies on it: it answers, is new enough, and evicts no keys. With any policy but
 * `noeviction` a full Redis would silently drop locks and jobs.
 */
interface RedisFacts {
  version: string;
  /** Null if the server does not report it. */
  policy: string | null;
}

const CHECK_TIMEOUT_MS = 5_000;
const OLDEST = { major: 6, minor: 2 };

/** Of a Cluster every node that answers is checked, because a replica may become a primary. Returns the facts of the first. */
export async function checkRedis(
  url: string,
  { onWarning, timeoutMs = CHECK_TIMEOUT_MS }: { onWarning: Warn; timeoutMs?: number },
): Promise<RedisFacts> {
  const place = parseRedisUrl(url);
  const at = redisAddress(url);
  let lastError: unknown = null;
  const redis = openRedis(url, {
    lazyConnect: true,
    connectTimeout: timeoutMs,
    enableReadyCheck: false,
    // Old servers lack protocol 3; with 2 their version can be reported.
    protocol: 2,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  redis.on('error', (error: unknown) => (lastError ??= error));
  // The answer of a Sentinel. The error after it only says that no Sentinel answered.
  redis.on('sentinelError', (error: unknown) => (lastError = error));
  const expired = Promise.withResolvers<never>();
  const timer = setTimeout(() => expired.reject(new Error(`no answer in ${timeoutMs / 1_000} s`)), timeoutMs);
  try {
    const answers = await Promise.race([askServers(redis), expired.promise]);
    const [facts] = answers.map((answer) => judge(place, { at, ...answer }, onWarning));
    if (!facts) throw new Error('no node of the Cluster answers');
    return facts;
  } catch (error) {
    throw error instanceof TroupeError ? error : refusal(place, at, lastError ?? error);
  } finally {
    clearTimeout(timer);
    redis.disconnect();
  }
}

interface Answer {
  info: string;
  policy: string | null;
}

async function askServers(redis: RedisClient): Promise<Answer[]> {
  await redis.connect();
  if (redis instanceof Redis) return [await askServer(redis)];
  const asked = await Promise.allSettled(redis.nodes().map((node) => askServer(node)));
  return asked.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
}

async function askServer(redis: Redis): Promise<Answer> {
  await redis.ping();
  const info = await redis.info();
  return { info, policy: (await askPolicy(redis)) ?? field(info, 'maxmemory_policy') };
}

/** Managed servers forbid CONFIG; INFO then has the same value. */
async function askPolicy(redis: Redis): Promise<string | null> {
  const reply: unknown = await redis.config('GET', 'maxmemory-policy').catch(() => null);
  return Array.isArray(reply) && typeof reply[1] === 'string' ? reply[1] : null;
}

/** Throws `server_unsuitable`. */
function judge(
  place: RedisPlace,
  { at, info, policy }: Answer & { at: string },
  onWarning: Warn,
): RedisFacts {
  const version = field(info, 'redis_version') ?? 'unknown';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < OLDEST.major || (major === OLDEST.major && minor < OLDEST.minor)) {
    throw new TroupeError(
      'server_unsuitable',
      `Redis at ${at} has version ${version}; upgrade it to ${OLDEST.major}.${OLDEST.minor} or newer`,
      { at, version },
    );
  }
  refuseOtherKind(place, at, info);
  if (policy === null) {
    onWarning(
      `Redis at ${at} does not report its maxmemory-policy: make sure that it is noeviction`,
      'redis check',
    );
  } else if (policy !== 'noeviction') {
    throw new TroupeError(
      'server_unsuitable',
      `Redis at ${at} has maxmemory-policy ${policy}: a full server would silently drop locks and wakes. ` +
        `Run: ${fixOf(place)}; and put "maxmemory-policy noeviction" into its redis.conf to make it permanent`,
      { at, policy },
    );
  }
  return { version, policy };
}

/** A node of a Cluster refuses commands for the slots of others, and a Sentinel holds no keys. */
function refuseOtherKind({ kind }: RedisPlace, at: string, info: string): void {
  const mode = field(info, 'redis_mode');
  const found = mode === 'cluster' || mode === 'sentinel' ? mode : 'server';
  if (kind !== 'server' || found === 'server') return;
  const message =
    found === 'cluster'
      ? `Redis at ${at} is a node of a Cluster: write redis+cluster://${at} as its URL, best with several nodes`
      : `${at} is a Sentinel: write redis+sentinel://${at}/name-of-the-primary as the URL of Redis, best with all Sentinels`;
  throw new TroupeError('server_unsuitable', message, { at });
}

function fixOf(place: RedisPlace): string {
  const set = 'CONFIG SET maxmemory-policy noeviction';
  if (place.kind === 'sentinel') return `${set} on the primary and on its replicas`;
  const { tls, login, host, port } =
    place.kind === 'server'
      ? {
          tls: place.url.protocol === 'rediss:',
          login: place.url.password,
          host: place.url.hostname,
          port: place.url.port || '6379',
        }
      : { tls: place.isSecure, login: place.login.password ?? '', ...place.hosts[0] };
  const secured = `${tls ? ' --tls' : ''}${login === '' ? '' : ' --askpass'}`;
  return place.kind === 'server'
    ? `redis-cli -h ${host} -p ${port}${secured} ${set}`
    : `redis-cli${secured} --cluster call ${host}:${port} ${set}`;
}

/** Advice by the kind of the URL and the error of ioredis. */
const WRONG_KIND: readonly (readonly [RedisPlace['kind'], RegExp, string])[] = [
  ['cluster', /cluster support disabled/, 'is no Cluster: write redis://host:6379 as its URL'],
  ['sentinel', /unknown command .sentinel/i, 'is no Sentinel: write redis://host:6379 as its URL'],
  [
    'sentinel',
    /No such master|invalid reply: null/,
    'is a Sentinel that knows no primary of this name: correct the end of REDIS_URL',
  ],
];

function refusal({ kind }: RedisPlace, at: string, error: unknown): TroupeError {
  const why = reason(error);
  const denied = /^(?:NOAUTH|WRONGPASS|NOPERM|ERR AUTH|ERR invalid password)/.test(why);
  if (denied) {
    return new TroupeError(
      'server_unsuitable',
      `Redis at ${at} refuses the login: ${why}. Put a user and password into the URL that may run all commands`,
      { at },
      { cause: error },
    );
  }
  const [, , unsuitable] = WRONG_KIND.find(([of, said]) => of === kind && said.test(why)) ?? [];
  if (unsuitable !== undefined) {
    return new TroupeError('server_unsuitable', `Redis at ${at} ${unsuitable}`, { at }, { cause: error });
  }
  return new TroupeError(
    'queue_unavailable',
    `Redis at ${at} is unreachable; connecting and PING failed with: ${why}. Start it, or correct REDIS_URL`,
    { at },
    { cause: error },
  );
}

function field(info: string, name: string): string | null {
  const line = info.split(/\r?\n/).find((each) => each.startsWith(`${name}:`));
  return line?.slice(name.length + 1) ?? null;
}
