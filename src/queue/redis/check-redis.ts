import { Redis } from 'ioredis';
import { TroupeError } from '../../errors.ts';
import { parseRedisUrl, reason, redisAddress } from './connect-redis.ts';

/**
 * The look at a Redis before anything relies on it: that it answers, is new enough, and never throws keys away. With
 * any policy but `noeviction` a full Redis would drop locks and jobs without a word.
 */
export interface RedisFacts {
  version: string;
  /** Null if the server does not report it. */
  policy: string | null;
}

const CHECK_TIMEOUT_MS = 5_000;
const OLDEST = { major: 6, minor: 2 };

export async function checkRedis(
  url: string,
  { onWarning, timeoutMs = CHECK_TIMEOUT_MS }: CheckOptions,
): Promise<RedisFacts> {
  const at = redisAddress(url);
  let lastError: unknown = null;
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: timeoutMs,
    enableReadyCheck: false,
    // Servers that are too old lack the newer protocol; connecting with this one lets us report the version.
    protocol: 2,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  redis.on('error', (error: unknown) => {
    lastError = error;
  });
  const expired = Promise.withResolvers<never>();
  const timer = setTimeout(() => expired.reject(new Error(`no answer in ${timeoutMs / 1_000} s`)), timeoutMs);
  try {
    const { info, policy } = await Promise.race([askServer(redis), expired.promise]);
    return judge(url, at, info, policy, onWarning);
  } catch (error) {
    throw error instanceof TroupeError ? error : refusal(at, lastError ?? error);
  } finally {
    clearTimeout(timer);
    redis.disconnect();
  }
}

interface CheckOptions {
  onWarning: (error: unknown, where: string) => void;
  timeoutMs?: number;
}

async function askServer(redis: Redis): Promise<{ info: string; policy: string | null }> {
  await redis.connect();
  await redis.ping();
  const info = await redis.info();
  return { info, policy: (await askPolicy(redis)) ?? field(info, 'maxmemory_policy') };
}

/** Managed servers forbid CONFIG; INFO then has the same value. */
async function askPolicy(redis: Redis): Promise<string | null> {
  const reply: unknown = await redis.config('GET', 'maxmemory-policy').catch(() => null);
  return Array.isArray(reply) && typeof reply[1] === 'string' ? reply[1] : null;
}

function judge(
  url: string,
  at: string,
  info: string,
  policy: string | null,
  onWarning: CheckOptions['onWarning'],
): RedisFacts {
  const version = field(info, 'redis_version') ?? 'unknown';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < OLDEST.major || (major === OLDEST.major && minor < OLDEST.minor)) {
    throw new TroupeError(
      'server_unsuitable',
      `Redis at ${at} has version ${version}, and ${OLDEST.major}.${OLDEST.minor} is the oldest that works: upgrade it`,
      { at, version },
    );
  }
  if (policy === null) {
    onWarning(
      `Redis at ${at} does not report its maxmemory-policy: make sure that it is noeviction`,
      'redis check',
    );
  } else if (policy !== 'noeviction') {
    throw new TroupeError(
      'server_unsuitable',
      `Redis at ${at} has maxmemory-policy ${policy}, so that a full server drops locks and wakes without a word. ` +
        `Run: ${fixOf(url)}; and put "maxmemory-policy noeviction" into its redis.conf, so that it stays`,
      { at, policy },
    );
  }
  return { version, policy };
}

function fixOf(url: string): string {
  const { hostname, port, protocol, password } = parseRedisUrl(url);
  const secured = `${protocol === 'rediss:' ? ' --tls' : ''}${password === '' ? '' : ' --askpass'}`;
  return `redis-cli -h ${hostname} -p ${port || '6379'}${secured} CONFIG SET maxmemory-policy noeviction`;
}

function refusal(at: string, error: unknown): TroupeError {
  const why = reason(error);
  const denied = /^(?:NOAUTH|WRONGPASS|NOPERM|ERR AUTH|ERR invalid password)/.test(why);
  return denied
    ? new TroupeError(
        'server_unsuitable',
        `Redis at ${at} refuses us: ${why}. Give user and password in the URL, with the right to all commands`,
        { at },
        { cause: error },
      )
    : new TroupeError(
        'queue_unavailable',
        `Redis at ${at} cannot be reached: tried to connect and to PING it, and got: ${why}. ` +
          'Start it, or correct REDIS_URL',
        { at },
        { cause: error },
      );
}

function field(info: string, name: string): string | null {
  const line = info.split(/\r?\n/).find((each) => each.startsWith(`${name}:`));
  return line?.slice(name.length + 1) ?? null;
}
