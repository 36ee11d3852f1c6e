import { Redis } from 'ioredis';
import { TroupeError } from '../../base/errors.ts';
import { openRedis, reason, type RedisClient } from './connect-redis.ts';
import type { Warn } from '../outage.ts';
import { parseRedisUrl, redisAddress, type RedisPlace } from './redis-url.ts';

/**
 * The check of a Redis before anything relies on it: it answers, is new enough, and evicts no keys. With any policy but
 * `noeviction` a full Redis would silently drop locks and jobs.
 */
export interface RedisFacts {
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
  // What a Sentinel answered; the error after it only says that none had an answer.
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

/** By the kind of the URL and what ioredis says, what to do. */
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
