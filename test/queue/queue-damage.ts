import type { Redis } from 'ioredis';

/** What somebody else's program, or a hand, may leave under a name of ours. */
export const TYPES = ['string', 'list', 'set', 'zset', 'hash', 'stream'] as const;
export type KeyType = (typeof TYPES)[number];

/** Keys of fixed names that BullMQ works on, with what they are. */
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

/** Puts a key of this type there, whatever was there before. */
export async function plant(redis: Redis, key: string, type: KeyType): Promise<void> {
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
  write: (redis: Redis, key: (part: string) => string) => Promise<unknown>;
}

const HUGE = 'x'.repeat(1_000_000);
const BINARY = Buffer.from([0, 255, 13, 10, 1]);
const LAST = '18446744073709551615-18446744073709551615';

/** Of the right type, with contents that hold work up or make scripts fail. */
export const NONSENSE: readonly Nonsense[] = [
  { name: 'an id that is no number', write: (redis, key) => redis.set(key('id'), 'seven') },
  { name: 'an id that cannot rise', write: (redis, key) => redis.set(key('id'), '9223372036854775807') },
  { name: 'an id beyond what is written exactly', write: (redis, key) => redis.set(key('id'), 1e16) },
  { name: 'a huge id', write: (redis, key) => redis.set(key('id'), HUGE) },
  { name: 'a binary id', write: (redis, key) => redis.set(key('id'), BINARY) },
  { name: 'a count of lanes that is none', write: (redis, key) => redis.set(key('pc'), BINARY) },
  { name: 'a queue that is paused', write: (redis, key) => redis.hset(key('meta'), 'paused', 1) },
  { name: 'no work at once', write: (redis, key) => redis.hset(key('meta'), 'concurrency', 0) },
  {
    name: 'work at once that is no number',
    write: (redis, key) => redis.hset(key('meta'), 'concurrency', 'x'),
  },
  {
    name: 'a rate that is never over',
    async write(redis, key) {
      await redis.hset(key('meta'), { max: 1, duration: 1e12 });
      await redis.set(key('limiter'), 9, 'PX', 1e12);
    },
  },
  {
    name: 'a number of events that is none',
    write: (redis, key) => redis.hset(key('meta'), 'opts.maxLenEvents', HUGE),
  },
  {
    name: 'a stream at its end',
    write: (redis, key) => redis.xadd(key('events'), LAST, 'a', 'b').catch(() => {}),
  },
  { name: 'a check without an end', write: (redis, key) => redis.set(key('stalled-check'), 1) },
  { name: 'wakes of long ago', write: (redis, key) => redis.zadd(key('delayed'), '-inf', 'a', -5, 'b') },
  { name: 'wakes that are never due', write: (redis, key) => redis.zadd(key('delayed'), '+inf', 'c') },
  {
    name: 'jobs that are not there',
    write: (redis, key) => redis.rpush(key('wait'), 'x', '', BINARY, '0:5', 'wait'),
  },
  {
    name: 'a marker of another time',
    write: (redis, key) => redis.zadd(key('marker'), '-inf', 'x', '+inf', HUGE),
  },
];
