import type { RedisClient } from '../../src/queue/redis/connect-redis.ts';

/** Types that another program, or a person, may write under one of our key names. */
export const TYPES = ['string', 'list', 'set', 'zset', 'hash', 'stream'] as const;
export type KeyType = (typeof TYPES)[number];

/** BullMQ's keys with fixed names, and their types. */
export const FIXED: Readonly<Record<string, KeyType>> = {
  wait: 'list',
  active: 'list',
  paused: 'list',
  delayed: 'zset',
  prioritized: 'zset',
  'waiting-children': 'zset',
  completed: 'zset',
  failed: 'zset',
  repeat: 'zset',
  stalled: 'set',
  'stalled-check': 'string',
  limiter: 'string',
  events: 'stream',
  meta: 'hash',
  id: 'string',
  marker: 'zset',
  pc: 'string',
};

/** Replaces the key by one of this type. */
export async function plant(redis: RedisClient, key: string, type: KeyType): Promise<void> {
  await redis
    .multi()
    .del(key)
    .call(...PLANTED[type](key))
    .exec();
}

const PLANTED: Record<KeyType, (key: string) => [string, ...string[]]> = {
  string: (key) => ['SET', key, 'nonsense'],
  list: (key) => ['RPUSH', key, 'nonsense', '0:1'],
  set: (key) => ['SADD', key, 'nonsense'],
  zset: (key) => ['ZADD', key, '1', 'nonsense'],
  hash: (key) => ['HSET', key, 'nonsense', '1'],
  stream: (key) => ['XADD', key, '*', 'nonsense', '1'],
};

export interface Nonsense {
  name: string;
  write: (redis: RedisClient, key: (part: string) => string) => Promise<unknown>;
}

const HUGE = 'x'.repeat(1_000_000);
const BINARY = Buffer.from([0, 255, 13, 10, 1]);
const LAST = '18446744073709551615-18446744073709551615';

/** Contents of the right type that stop work or make scripts fail. */
export const NONSENSE: readonly Nonsense[] = [
  { name: 'an id that is not a number', write: (redis, key) => redis.set(key('id'), 'seven') },
  { name: 'an id that cannot rise', write: (redis, key) => redis.set(key('id'), '9223372036854775807') },
  { name: 'an id beyond exact numbers', write: (redis, key) => redis.set(key('id'), 1e16) },
  { name: 'a huge id', write: (redis, key) => redis.set(key('id'), HUGE) },
  { name: 'a binary id', write: (redis, key) => redis.set(key('id'), BINARY) },
  { name: 'an invalid counter of priorities', write: (redis, key) => redis.set(key('pc'), BINARY) },
  { name: 'a paused queue', write: (redis, key) => redis.hset(key('meta'), 'paused', 1) },
  { name: 'a concurrency of 0', write: (redis, key) => redis.hset(key('meta'), 'concurrency', 0) },
  {
    name: 'a concurrency that is not a number',
    write: (redis, key) => redis.hset(key('meta'), 'concurrency', 'x'),
  },
  {
    name: 'a rate limit that never ends',
    async write(redis, key) {
      await redis.hset(key('meta'), { max: 1, duration: 1e12 });
      await redis.set(key('limiter'), 9, 'PX', 1e12);
    },
  },
  {
    name: 'an invalid number of events',
    write: (redis, key) => redis.hset(key('meta'), 'opts.maxLenEvents', HUGE),
  },
  {
    name: 'a stream at its end',
    write: (redis, key) => redis.xadd(key('events'), LAST, 'a', 'b').catch(() => {}),
  },
  { name: 'a check that never expires', write: (redis, key) => redis.set(key('stalled-check'), 1) },
  {
    name: 'wakes due before all time',
    write: (redis, key) => redis.zadd(key('delayed'), '-inf', 'a', -5, 'b'),
  },
  { name: 'wakes that are never due', write: (redis, key) => redis.zadd(key('delayed'), '+inf', 'c') },
  {
    name: 'jobs that do not exist',
    write: (redis, key) => redis.rpush(key('wait'), 'x', '', BINARY, '0:5', 'wait'),
  },
  {
    name: 'a marker at an impossible time',
    write: (redis, key) => redis.zadd(key('marker'), '-inf', 'x', '+inf', HUGE),
  },
];
