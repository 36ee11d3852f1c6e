import { Redis } from 'ioredis';
import { TroupeError } from '../../errors.ts';
import { parseRedisUrl, reason, redisAddress } from './connect-redis.ts';
import type { Warn } from './outage.ts';

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

export async function checkRedis(
  url: string,
  { onWarning, timeoutMs = CHECK_TIMEOUT_MS }: { onWarning: Warn; timeoutMs?: number },
): Promise<RedisFacts> {
  const at = redisAddress(url);
  let lastError: unknown = null;
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: timeoutMs,
    enableReadyCheck: false,
    // Old servers lack protocol 3; with 2 their version can be reported.
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
    return judge(url, await Promise.race([askServer(redis), expired.promise]), onWarning);
  } catch (error) {
    throw error instanceof TroupeError ? error : refusal(at, lastError ?? error);
  } finally {
    clearTimeout(timer);
    redis.disconnect();
  }
}

type Answers = Awaited<ReturnType<typeof askServer>>;

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

/** Throws `server_unsuitable`. */
function judge(url: string, { info, policy }: Answers, onWarning: Warn): RedisFacts {
  const at = redisAddress(url);
  const version = field(info, 'redis_version') ?? 'unknown';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < OLDEST.major || (major === OLDEST.major && minor < OLDEST.minor)) {
    throw new TroupeError(
      'server_unsuitable',
      `Redis at ${at} has version ${version}; upgrade it to ${OLDEST.major}.${OLDEST.minor} or newer`,
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
      `Redis at ${at} has maxmemory-policy ${policy}: a full server would silently drop locks and wakes. ` +
        `Run: ${fixOf(url)}; and put "maxmemory-policy noeviction" into its redis.conf to make it permanent`,
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
        `Redis at ${at} refuses the login: ${why}. Put a user and password into the URL that may run all commands`,
        { at },
        { cause: error },
      )
    : new TroupeError(
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
