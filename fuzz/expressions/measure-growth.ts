import vm from 'node:vm';
import { grown, type Repetition } from './hostile-repetitions.ts';

/** Small steps first: what doubles with every letter is seen before it takes for ever. */
const SIZES = [16, 20, 24, 28, 32, 40, 48, 64, 96, 192, 512, 2_048, 8_192, 16_384];
/** Of the processor, for one text: below it nothing is told from noise, and nothing takes it that is linear and short. */
const SUSPECT_MS = 4;
/** From one size to four times as much: work in proportion to the text takes 4 times, its square 16 times. */
const FACTOR = 4;
const MOST_GROWTH = 9;
const REPEATS = 3;
/** It was asked for the third time and still did not end. */
const ENDLESS_MS = 5_000;

export interface Growth {
  size: number;
  ms: number;
  /** At four times the size; null where it did not end. */
  later: number | null;
}

/** Null where the work grows in proportion to the text, else where it did not. */
export function measureGrowth(
  take: (text: string) => unknown,
  repetition: Repetition,
  most = Infinity,
): Growth | null {
  for (const size of SIZES) {
    if (size > most) return null;
    const text = grown(repetition, size);
    if (cpuMs(() => take(text)) <= SUSPECT_MS) continue;
    const ms = leastMs(take, text) ?? ENDLESS_MS;
    if (ms > SUSPECT_MS) return grownTooMuch(take, repetition, { size, ms });
  }
  return null;
}

function grownTooMuch(
  take: (text: string) => unknown,
  repetition: Repetition,
  { size, ms }: { size: number; ms: number },
): Growth | null {
  const later = leastMs(take, grown(repetition, size * FACTOR));
  return later !== null && later <= ms * MOST_GROWTH ? null : { size, ms, later };
}

/** Of some: others use the machine too, and code gets faster as it runs. Null where it had to be ended. */
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

/** Null where it had to be ended: a search can be, from a script with a time limit. */
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
