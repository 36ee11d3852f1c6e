import vm from 'node:vm';
import { grown, type Repetition } from './hostile-repetitions.ts';

/**
 * Small steps first, so that doubling with every letter is noticed before it takes forever. Quadratic work on the last is
 * hundreds of millions of steps, which take longer than noise on a fast machine, too.
 */
const SIZES = [16, 20, 24, 28, 32, 40, 48, 64, 96, 192, 512, 2_048, 8_192, 32_768];
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
  most = Infinity,
): Growth | null {
  for (const size of SIZES) {
    if (size > most) return null;
    const text = grown(repetition, size);
    if (cpuMs(() => take(text)) <= SUSPECT_MS) continue;
    const growth = growthAt(take, repetition, size);
    if (growth !== 'fast') return growth;
  }
  return null;
}

/** `fast`: too fast to tell anything. */
function growthAt(
  take: (text: string) => unknown,
  repetition: Repetition,
  size: number,
): Growth | 'fast' | null {
  let growth: Growth | 'fast' = 'fast';
  for (let tries = 0; tries < TRIES; tries += 1) {
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
  const later = leastMs(take, grown(repetition, size * FACTOR));
  return later !== null && later <= ms * MOST_GROWTH ? null : { size, ms, later };
}

/**
 * The least of several measurements, because other processes use the machine and code gets faster as it runs. Null if
 * it had to be terminated.
 */
function leastMs(take: (text: string) => unknown, text: string): number | null {
  let least = Infinity;
  for (let time = 0; time < REPEATS; time++) {
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
