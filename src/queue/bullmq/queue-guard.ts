import type { Redis } from 'ioredis';
import type { Clock } from '../../clock.ts';
import { TroupeError } from '../../errors.ts';
import { guardScripts, QUEUE_KEYS } from './guard-scripts.ts';
import { bracedPrefix, QUEUE_NAME } from './wake-queue.ts';

interface QueueGuardDeps {
  redis: Redis;
  prefix: string;
  clock: Clock;
  everyMs: number;
  warn: (error: unknown, where: string) => void;
  onMended: (part: 'queue' | 'key') => void;
}

/** Minimum pause between two inspections. */
const LOOK_PAUSE_MS = 200;
const EMPTY_EVERY_MS = 60_000;
/** Consecutive inspections that found nothing although commands kept failing. */
const LOOKS_IN_VAIN = 3;
const BY_CONTENTS =
  /WRONGTYPE|not an integer|not a valid float|overflow|out of range|exhausted the last possible|user_script|running script/;
const NOT_BY_CONTENTS =
  /unknown (?:redis )?command|NOPERM|OOM |MISCONF|READONLY|NOSCRIPT|BUSY |LOADING|CLUSTERDOWN/i;

/**
 * Keeps the queue's keys usable for BullMQ. A key of a wrong type, or with contents that none of our programs wrote,
 * makes scripts of BullMQ fail half-way, for every process and every wake.
 *  G1  One script inspects the keys with fixed names and repairs them in the same step. If one has a wrong type, or a
 *      field of `meta` is not a number, the whole queue is emptied: a job that lost its list, or was left by a failed
 *      script, would swallow later wakes. `onLost` then asks for all actors with work, which the store knows.
 *  G2  Keys of single jobs and of caps are inspected at the start, after Redis refused a command because of a key's
 *      contents, and after the queue was emptied: in slices, while work goes on.
 *  G3  If commands are still refused and nothing is found, the queue is emptied too, at most every `EMPTY_EVERY_MS`.
 *  G4  Only a router that takes wakes (`start`) repairs, because only there `onLost` has an effect. Others only report.
 */
export class QueueGuard {
  readonly #deps: QueueGuardDeps;
  /** Prefixes of all keys of the troupe and of those of the queue: `{troupe}:` and `{troupe}:wake:`. */
  readonly #prefixes: KeyPrefixes;
  #started: { signal: AbortSignal; onLost: () => void } | null = null;
  #isSuspicious = true;
  #inVain = 0;
  #emptiedAt = Number.NEGATIVE_INFINITY;
  #pause = new AbortController();
  #repairing: Promise<void> | null = null;

  constructor(deps: QueueGuardDeps) {
    this.#deps = deps;
    const own = `${bracedPrefix(deps.prefix)}:`;
    this.#prefixes = { own, base: `${own}${QUEUE_NAME}:` };
  }

  /** Inspects and repairs until the signal aborts. `onLost` is called when wakes were dropped. */
  start(signal: AbortSignal, onLost: () => void): void {
    this.#started = { signal, onLost };
    signal.addEventListener('abort', () => this.#pause.abort(), { once: true });
    void this.#watch(signal);
  }

  /** Reports a failed command. Failures that a key's contents did not cause are ignored. */
  suspect(error: unknown): void {
    const text = error instanceof Error ? error.message : String(error);
    if (!BY_CONTENTS.test(text) || NOT_BY_CONTENTS.test(text)) return;
    this.#isSuspicious = true;
    this.#pause.abort();
  }

  /** Throws `queue_unavailable` with the reason why the queue does not work. */
  async check(): Promise<void> {
    if (this.#started) {
      await this.#repair();
      // A single refusal may predate the repair.
      if (this.#inVain > 1)
        throw damaged('commands are refused because of what is in its keys; the search goes on');
      return;
    }
    const { redis } = this.#deps;
    const { problems } = await inspectQueue(redis, this.#prefixes, { mend: false, empty: false });
    const [first] = problems;
    if (first) throw damaged(`${describe(first)}; a worker will repair it`);
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { clock, everyMs } = this.#deps;
    while (!signal.aborted) {
      this.#pause = new AbortController();
      // The connection reports what is wrong with Redis itself.
      await this.#repair().catch(() => {});
      await clock.sleep(LOOK_PAUSE_MS, signal);
      if (!this.#isSuspicious) await clock.sleep(everyMs, AbortSignal.any([signal, this.#pause.signal]));
    }
  }

  /** One repair at a time; concurrent callers share it. */
  #repair(): Promise<void> {
    this.#repairing ??= this.#repairNow().finally(() => (this.#repairing = null));
    return this.#repairing;
  }

  async #repairNow(): Promise<void> {
    const { redis, clock } = this.#deps;
    const isSuspected = this.#isSuspicious;
    this.#isSuspicious = false;
    try {
      const mayEmpty = clock.monotonic() - this.#emptiedAt >= EMPTY_EVERY_MS;
      const empty = this.#inVain >= LOOKS_IN_VAIN && mayEmpty;
      const { cut, emptied, problems } = await inspectQueue(redis, this.#prefixes, { mend: true, empty });
      this.#report(problems, emptied ? 'the queue was emptied' : 'it was repaired');
      if (emptied) this.#reportEmptied();
      const sifted = isSuspected || cut !== '' ? await this.#sift(cut) : 0;
      if (cut !== '') {
        await guardScripts.forget.run(redis, [`${this.#prefixes.base}dropped`], [cut]);
        this.#started?.onLost();
      }
      const isFound = problems.length + sifted > 0 || emptied;
      this.#inVain = isSuspected && !isFound ? this.#inVain + 1 : 0;
    } catch (error) {
      this.#isSuspicious ||= isSuspected;
      throw error;
    }
  }

  /** Inspects the keys of single jobs and of caps. Returns how many were removed. */
  async #sift(cut: string): Promise<number> {
    let removed = 0;
    for await (const problems of siftKeys(this.#deps.redis, this.#prefixes, cut)) {
      this.#report(problems, 'it was removed');
      removed += problems.length;
      if (this.#started?.signal.aborted) break;
    }
    return removed;
  }

  #report(problems: readonly Problem[], done: string): void {
    const { warn, onMended } = this.#deps;
    for (const problem of problems) {
      warn(`${describe(problem)}; ${done}`, 'queue');
      onMended('key');
    }
  }

  #reportEmptied(): void {
    const { clock, warn, onMended } = this.#deps;
    this.#emptiedAt = clock.monotonic();
    onMended('queue');
    warn(
      'the queue in Redis was damaged and was emptied; waiting actors are woken again from the store. ' +
        'Something else writes to this Redis: give Troupe a Redis or a Redis user of its own',
      'queue',
    );
  }
}

function damaged(what: string): TroupeError {
  return new TroupeError('queue_unavailable', `the queue in Redis is damaged: ${what}`);
}

const KEY_SHOWN = 120;

/** Key names may come from anyone, so they are shortened and escaped. */
function describe({ key, what }: Problem): string {
  const shown = key.length > KEY_SHOWN ? `${key.slice(0, KEY_SHOWN)}…` : key;
  return `the key ${JSON.stringify(shown).slice(1, -1)} ${what}`;
}

interface KeyPrefixes {
  own: string;
  base: string;
}

/** Result of one inspection of the keys with fixed names. */
interface Inspection {
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

const KEYS_PER_SLICE = 500;

/** `mend` repairs in the same step; `empty` empties the queue whatever is found. */
async function inspectQueue(
  redis: Redis,
  { base }: KeyPrefixes,
  { mend, empty }: { mend: boolean; empty: boolean },
): Promise<Inspection> {
  const keys = QUEUE_KEYS.map((name) => base + name);
  const reply = await guardScripts.inspect.run(redis, keys, [base, mend ? 1 : 0, empty ? 1 : 0]);
  const [cut, emptied, ...found] = reply as [string, number, ...string[]];
  return { cut, emptied: emptied === 1, problems: pairs(found) };
}

/** Scans all keys of the troupe in slices. Yields what was wrong with those that it removed. */
async function* siftKeys(redis: Redis, { own, base }: KeyPrefixes, cut: string): AsyncGenerator<Problem[]> {
  const pattern = `${own.replaceAll(/[\\*?[\]]/g, String.raw`\$&`)}*`;
  let cursor = '0';
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', pattern, 'COUNT', KEYS_PER_SLICE);
    cursor = next;
    if (keys.length > 0)
      yield pairs((await guardScripts.sift.run(redis, keys, [base, own, cut])) as string[]);
  } while (cursor !== '0');
}

function pairs(flat: readonly string[]): Problem[] {
  return Array.from({ length: flat.length / 2 }, (_, index) => ({
    key: flat[2 * index] ?? '',
    what: flat[2 * index + 1] ?? '',
  }));
}
