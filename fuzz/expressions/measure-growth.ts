import vm from 'node:vm';
import { grown, type Repetition } from './hostile-repetitions.ts';

/**
 * Small steps first, so that doubling with every letter is noticed before it takes forever. Quadratic work on the last is
 * hundreds of millions of steps, which take longer than noise on a fast machine, too.
 */
const SIZES = [16, 20, 24, 28, 32, 40, 48, 64, 96, 192, 512, 2_048, 8_192, 32_768];
/**
 * The last size is tried only if the one before took this long. Linear work on it takes some hundredths of a millisecond, quadratic
 * work of the smallest kind that the last size could show takes more.
 */
const WORTH_LAST_MS = 0.15;
/** CPU time for one text. Below it a measurement is noise; linear code on a short text never reaches it. */
const SUSPECT_MS = 4;
/**
 * Maximum growth from one size to four times that size: linear work takes 4 times as long, quadratic work 16 times.
 */
const FACTOR = 4;
const MOST_GROWTH = 9;
const REPEATS = 3;
/** What is linear shows it in one of so many tries: the collector of a large process takes its time from any of them. */
const TRIES = 3;

export interface GrowthOptions {
  /** Largest size that is tried. Default: all. */
  most?: number;
  /** Tries before work counts as slow. Default 3; one is enough for what is known to be slow. */
  tries?: number;
}

/** The third attempt did not end either. */
const ENDLESS_MS = 5_000;

export interface Growth {
  size: number;
  ms: number;
  /** Time at four times the size; null if it did not end. */
  later: number | null;
}

/** Null when the work grows linearly with the text, else the size at which it did not. */
export function measureGrowth(
  take: (text: string) => unknown,
  repetition: Repetition,
  { most = Infinity, tries = TRIES }: GrowthOptions = {},
): Growth | null {
  let before = 0;
  for (const size of SIZES) {
    if (size > most || (size === SIZES.at(-1) && before < WORTH_LAST_MS)) return null;
    const text = grown(repetition, size);
    before = cpuMs(() => take(text));
    if (before <= SUSPECT_MS) continue;
    const growth = growthAt(take, repetition, { size, tries });
    if (growth !== 'fast') return growth;
  }
  return null;
}

/** `fast`: too fast to tell anything. */
function growthAt(
  take: (text: string) => unknown,
  repetition: Repetition,
  { size, tries }: { size: number; tries: number },
): Growth | 'fast' | null {
  let growth: Growth | 'fast' = 'fast';
  for (let n = 0; n < tries; n += 1) {
    const ms = leastMs(take, grown(repetition, size)) ?? ENDLESS_MS;
    if (ms <= SUSPECT_MS) return 'fast';
    const found = grownTooMuch(take, repetition, { size, ms });
    if (found === null || found.later === null) return found;
    growth = found;
  }
  return growth;
}

function grownTooMuch(
  take: (text: string) => unknown,
  repetition: Repetition,
  { size, ms }: { size: number; ms: number },
): Growth | null {
  const later = leastMs(take, grown(repetition, size * FACTOR), ms * MOST_GROWTH);
  return later !== null && later <= ms * MOST_GROWTH ? null : { size, ms, later };
}

/**
 * The least of several measurements, because other processes use the machine and code gets faster as it runs. Null if
 * it had to be terminated. One of at most `enough` needs no other.
 */
function leastMs(take: (text: string) => unknown, text: string, enough = 0): number | null {
  let least = Infinity;
  for (let time = 0; time < REPEATS && least > enough; time++) {
    const ms = endingMs(() => take(text));
    if (ms === null) return null;
    least = Math.min(least, ms);
  }
  return least;
}

const END = new vm.Script('work()');

/** Null if it exceeded the time limit: a regular expression can be terminated only inside a `vm` script. */
function endingMs(work: () => unknown): number | null {
  let ms = 0;
  const context = vm.createContext({ work: () => void (ms = cpuMs(work)) });
  try {
    END.runInContext(context, { timeout: ENDLESS_MS });
    return ms;
  } catch (error) {
    if ((error as { code?: string }).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return null;
    throw error;
  }
}

function cpuMs(work: () => unknown): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}
