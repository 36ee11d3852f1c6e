import type { Redis } from 'ioredis';
import { guardScripts } from './guard-scripts.ts';
import { QUEUE_KEYS } from './queue-shape.ts';

/** What one look at the keys of fixed names found. */
export interface Look {
  /** The queue was emptied up to this job, and what its jobs left is not cleared away yet; '': all is. */
  cut: string;
  /** By this very look. */
  emptied: boolean;
  problems: Problem[];
}

export interface Problem {
  key: string;
  what: string;
}

const KEYS_A_SLICE = 500;

/** With `mend` what is wrong is put right in the same step; with `empty` the queue is emptied whatever is found. */
export async function inspectQueue(
  redis: Redis,
  base: string,
  { mend, empty }: { mend: boolean; empty: boolean },
): Promise<Look> {
  const keys = Object.keys(QUEUE_KEYS).map((name) => base + name);
  const reply = await guardScripts.inspect.run(redis, keys, [base, mend ? 1 : 0, empty ? 1 : 0]);
  const [cut, emptied, ...found] = reply as [string, number, ...string[]];
  return { cut, emptied: emptied === 1, problems: pairs(found) };
}

/** Goes through all keys of the troupe, slice by slice, and tells what was wrong with those that it removed. */
export async function* siftKeys(
  redis: Redis,
  { own, base, cut }: { own: string; base: string; cut: string },
): AsyncGenerator<Problem[]> {
  const pattern = `${own.replaceAll(/[\\*?[\]]/g, String.raw`\$&`)}*`;
  let cursor = '0';
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', pattern, 'COUNT', KEYS_A_SLICE);
    cursor = next;
    if (keys.length > 0)
      yield pairs((await guardScripts.sift.run(redis, keys, [base, own, cut])) as string[]);
  } while (cursor !== '0');
}

/** All that was left of the queue up to this job is cleared away. */
export async function emptiedUpTo(redis: Redis, base: string, cut: string): Promise<void> {
  await guardScripts.forget.run(redis, [`${base}dropped`], [cut]);
}

function pairs(flat: readonly string[]): Problem[] {
  return Array.from({ length: flat.length / 2 }, (_, index) => ({
    key: flat[2 * index] ?? '',
    what: flat[2 * index + 1] ?? '',
  }));
}
