import type { Redis } from 'ioredis';
import { primariesOf, type RedisClient } from '../redis/connect-redis.ts';
import type { Clock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import { guardScripts, QUEUE_KEYS } from './guard-scripts.ts';
import { bracedPrefix, QUEUE_NAME } from './wake-queue.ts';

interface QueueGuardDeps {
  redis: RedisClient;
  prefix: string;
  clock: Clock;
  everyMs: number;
  warn: (error: unknown, where: string) => void;
  onMended: (part: 'queue' | 'key') => void;
}

const LOOK_PAUSE_MS = 200;
const EMPTY_EVERY_MS = 60_000;
const KEYS_PER_SLICE = 500;
/** Number of inspections in a row that found nothing although commands kept failing. */
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
 *      script, would swallow later wakes. `onLost` then starts a sweep of the whole store.
 *  G2  Keys of single jobs and of caps are inspected at the start, after Redis refused a command because of a key's
 *      contents, and after the queue was emptied: in slices, while work goes on.
 *  G3  If commands are still refused and nothing is found, the queue is emptied too, at most every `EMPTY_EVERY_MS`.
 *  G4  Only a router that takes wakes (`start`) repairs, because only there `onLost` has an effect. Others only report.
 */
export class QueueGuard {
  readonly #deps: QueueGuardDeps;
  /** Prefix of all keys of the troupe: `{troupe}:`. */
  readonly #own: string;
  /** Prefix of the queue's keys: `{troupe}:wake:`. */
  readonly #base: string;
  #started: { signal: AbortSignal; onLost: () => void } | null = null;
  #isSuspicious = true;
  #inVain = 0;
  #emptiedAt = Number.NEGATIVE_INFINITY;
  #pause = new AbortController();
  #repairing: Promise<void> | null = null;

  constructor(deps: QueueGuardDeps) {
    this.#deps = deps;
    this.#own = `${bracedPrefix(deps.prefix)}:`;
    this.#base = `${this.#own}${QUEUE_NAME}:`;
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
    const [first] = (await this.#inspect({ mend: false, empty: false })).problems;
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
      const { cut, emptied, problems } = await this.#inspect({ mend: true, empty });
      this.#report(problems, emptied ? 'the queue was emptied' : 'it was repaired');
      if (emptied) this.#reportEmptied();
      const sifted = isSuspected || cut !== '' ? await this.#sift(cut) : 0;
      if (cut !== '') {
        await guardScripts.forget.run(redis, [`${this.#base}dropped`], [cut]);
        this.#started?.onLost();
      }
      const isFound = problems.length + sifted > 0 || emptied;
      this.#inVain = isSuspected && !isFound ? this.#inVain + 1 : 0;
    } catch (error) {
      this.#isSuspicious ||= isSuspected;
      throw error;
    }
  }

  /** Inspects all keys of the troupe, slice by slice. Returns how many were removed. */
  async #sift(cut: string): Promise<number> {
    let removed = 0;
    for (const server of primariesOf(this.#deps.redis)) removed += await this.#siftServer(server, cut);
    return removed;
  }

  async #siftServer(server: Redis, cut: string): Promise<number> {
    let removed = 0;
    let cursor = '0';
    const pattern = `${this.#own.replaceAll(/[\\*?[\]]/g, String.raw`\$&`)}*`;
    do {
      const [next, keys] = await server.scan(cursor, 'MATCH', pattern, 'COUNT', KEYS_PER_SLICE);
      cursor = next;
      if (keys.length === 0) continue;
      const problems = pairs(
        await guardScripts.sift.run(this.#deps.redis, keys, [this.#base, this.#own, cut]),
      );
      this.#report(problems, 'it was removed');
      removed += problems.length;
    } while (cursor !== '0' && !this.#started?.signal.aborted);
    return removed;
  }

  /** `mend` repairs in the same step; `empty` empties the queue whatever is found. */
  async #inspect({ mend, empty }: { mend: boolean; empty: boolean }): Promise<Inspection> {
    const keys = QUEUE_KEYS.map((name) => this.#base + name);
    const args = [this.#base, mend ? 1 : 0, empty ? 1 : 0];
    const reply = await guardScripts.inspect.run(this.#deps.redis, keys, args);
    const [cut, emptied, ...found] = reply as [string, number, ...string[]];
    return { cut, emptied: emptied === 1, problems: pairs(found) };
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

function pairs(reply: unknown): Problem[] {
  const flat = reply as string[];
  return Array.from({ length: flat.length / 2 }, (_, index) => ({
    key: flat[2 * index] ?? '',
    what: flat[2 * index + 1] ?? '',
  }));
}
