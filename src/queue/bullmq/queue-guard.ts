import type { Redis } from 'ioredis';
import type { Clock } from '../../clock.ts';
import { TroupeError } from '../../errors.ts';
import { guardScripts, QUEUE_KEYS } from './guard-scripts.ts';

/**
 * Keeps the queue's keys such that BullMQ can work on them. A key of a wrong type, or with contents that no program of
 * ours wrote, makes scripts of BullMQ fail half-way, for every process and every wake.
 *
 *  G1  Each look is one script: what is wrong with the keys of fixed names is found, and put right in the same step. Where
 *      one of them is of the wrong type, or a field of `meta` is not a number, the queue is emptied as a whole: a job that
 *      lost its list, or was left by a script that failed, would swallow later wakes. The store is the truth: `onLost` asks for a look at all of it.
 *  G2  Keys of single jobs, and those of caps, are looked at when Redis has refused a command for what is in a key, at the
 *      start, and after the queue was emptied: slice by slice, with work going on between.
 *  G3  If commands go on being refused and nothing is found, the queue is emptied as well, at most every `EMPTY_EVERY_MS`.
 *  G4  Only who takes wakes (`start`) mends, because only there somebody makes up for what is lost. All others say it.
 */
export interface QueueGuardOptions {
  redis: Redis;
  /** Of all keys of the troupe, with its braces and the colon: `{troupe}:`. */
  own: string;
  /** Of the keys of the queue: `{troupe}:wake:`. */
  base: string;
  clock: Clock;
  everyMs: number;
  warn: (error: unknown, where: string) => void;
  onMended: (part: 'queue' | 'key') => void;
}

export interface QueueGuard {
  /** Inspects and repairs until the signal aborts. `onLost` is called when wakes were dropped. */
  start(signal: AbortSignal, onLost: () => void): void;
  /** Reports a failed command. Failures that a key's contents did not cause are ignored. */
  suspect(error: unknown): void;
  /** Throws `queue_unavailable` with the reason why the queue does not work. */
  check(): Promise<void>;
}

/** Minimum pause between two inspections. */
const LOOK_PAUSE_MS = 200;
const EMPTY_EVERY_MS = 60_000;
/** Consecutive inspections without a finding while commands kept failing. */
const LOOKS_IN_VAIN = 3;
const KEY_SHOWN = 120;
const BY_CONTENTS =
  /WRONGTYPE|not an integer|not a valid float|overflow|out of range|exhausted the last possible|user_script|running script/;
const NOT_BY_CONTENTS =
  /unknown (?:redis )?command|NOPERM|OOM |MISCONF|READONLY|NOSCRIPT|BUSY |LOADING|CLUSTERDOWN/i;

export function createQueueGuard(options: QueueGuardOptions): QueueGuard {
  const { redis, own, base, clock, everyMs, warn, onMended } = options;
  let started: { signal: AbortSignal; onLost: () => void } | null = null;
  let suspicious = true;
  let inVain = 0;
  let emptiedAt = Number.NEGATIVE_INFINITY;
  let pause = new AbortController();
  let mending: Promise<void> | null = null;

  function start(signal: AbortSignal, onLost: () => void): void {
    started = { signal, onLost };
    signal.addEventListener('abort', () => pause.abort(), { once: true });
    void watch(signal);
  }

  async function watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      pause = new AbortController();
      // What is wrong with Redis as such, its connection tells.
      await mend().catch(() => {});
      await clock.sleep(LOOK_PAUSE_MS, signal);
      if (!suspicious) await clock.sleep(everyMs, AbortSignal.any([signal, pause.signal]));
    }
  }

  function suspect(error: unknown): void {
    const text = error instanceof Error ? error.message : String(error);
    if (!BY_CONTENTS.test(text) || NOT_BY_CONTENTS.test(text)) return;
    suspicious = true;
    pause.abort();
  }

  /** One repair at a time; concurrent callers share it. */
  function mend(): Promise<void> {
    mending ??= mendNow().finally(() => (mending = null));
    return mending;
  }

  async function mendNow(): Promise<void> {
    const isSuspected = suspicious;
    suspicious = false;
    try {
      const empty = inVain >= LOOKS_IN_VAIN && clock.monotonic() - emptiedAt >= EMPTY_EVERY_MS;
      const { cut, emptied, problems } = await inspectQueue(redis, base, { mend: true, empty });
      for (const problem of problems) report(problem, emptied ? 'the queue was emptied' : 'it was put right');
      if (emptied) reportEmptied();
      const sifted = isSuspected || cut !== '' ? await sift(cut) : 0;
      if (cut !== '') {
        await emptiedUpTo(redis, base, cut);
        started?.onLost();
      }
      const isFound = problems.length + sifted > 0 || emptied;
      inVain = isSuspected && !isFound ? inVain + 1 : 0;
    } catch (error) {
      suspicious ||= isSuspected;
      throw error;
    }
  }

  function report(problem: Problem, done: string): void {
    warn(`${told(problem)}; ${done}`, 'queue');
    onMended('key');
  }

  function reportEmptied(): void {
    emptiedAt = clock.monotonic();
    onMended('queue');
    warn(
      'the queue in Redis was damaged and was emptied; what waited is woken again from the store. ' +
        'Something else writes to this Redis: give Troupe one of its own, or a user that others are not',
      'queue',
    );
  }

  async function sift(cut: string): Promise<number> {
    let removed = 0;
    for await (const problems of siftKeys(redis, { own, base, cut })) {
      for (const problem of problems) report(problem, 'it was removed');
      removed += problems.length;
      if (started?.signal.aborted) break;
    }
    return removed;
  }

  async function check(): Promise<void> {
    if (started) {
      await mend();
      // One refusal may predate the repair.
      if (inVain > 1) throw damaged('commands are refused for what is in its keys; a look goes on');
      return;
    }
    const { problems } = await inspectQueue(redis, base, { mend: false, empty: false });
    const [first] = problems;
    if (first) throw damaged(`${told(first)}; a worker puts it right`);
  }

  return { start, suspect, check };
}

function damaged(what: string): TroupeError {
  return new TroupeError('queue_unavailable', `the queue in Redis is damaged: ${what}`);
}

/** Key names may come from anyone, so they are shortened and escaped. */
function told({ key, what }: Problem): string {
  const shown = key.length > KEY_SHOWN ? `${key.slice(0, KEY_SHOWN)}…` : key;
  return `the key ${JSON.stringify(shown).slice(1, -1)} ${what}`;
}

/** Result of one inspection of the keys with fixed names. */
interface Look {
  /** The queue was emptied up to this job id and keys of its jobs remain; '' when none remain. */
  cut: string;
  /** Whether this inspection emptied it. */
  emptied: boolean;
  problems: Problem[];
}

interface Problem {
  key: string;
  what: string;
}

const KEYS_A_SLICE = 500;

/** With `mend` what is wrong is put right in the same step; with `empty` the queue is emptied whatever is found. */
async function inspectQueue(
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
async function* siftKeys(
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
async function emptiedUpTo(redis: Redis, base: string, cut: string): Promise<void> {
  await guardScripts.forget.run(redis, [`${base}dropped`], [cut]);
}

function pairs(flat: readonly string[]): Problem[] {
  return Array.from({ length: flat.length / 2 }, (_, index) => ({
    key: flat[2 * index] ?? '',
    what: flat[2 * index + 1] ?? '',
  }));
}
