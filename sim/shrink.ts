import type { Fault } from './faults.ts';
import { type Outcome, runSchedule } from './schedule.ts';

/** The smallest list of faults found that still causes a violation: leaves out halves, quarters and so on in turn. */
export async function shrink(outcome: Outcome): Promise<Outcome> {
  let smallest = await replay(outcome, outcome.faults);
  // A replay should give the same violation. If it does not, the full list is the best information.
  if (smallest.violations.length === 0) return outcome;
  for (let size = Math.ceil(smallest.faults.length / 2); size >= 1;) {
    let removed = false;
    for (let from = 0; from < smallest.faults.length;) {
      const fewer = smallest.faults.toSpliced(from, size);
      const tried = await replay(outcome, fewer);
      if (tried.violations.length > 0 && tried.faults.length < smallest.faults.length) {
        smallest = tried;
        removed = true;
      } else from += size;
    }
    if (size === 1 && !removed) break;
    if (!removed) size = Math.ceil(size / 2);
  }
  return smallest;
}

function replay({ seed, mode }: Outcome, faults: readonly Fault[]): Promise<Outcome> {
  return runSchedule({ seed, mode, replay: faults });
}

export function describeOutcome({ seed, mode, violations, faults, settledMs }: Outcome): string {
  const light = mode === 'light' ? ' --light' : '';
  return [
    `seed ${seed}, ${mode} faults: ${violations.length} violation(s), ${Math.round(settledMs)} ms after the faults`,
    ...violations.map((violation) => `  ${violation}`),
    `sufficient faults (${faults.length}):`,
    ...faults.map(({ kind, place }) => `  ${kind}: ${place}`),
    `repeat: npm run sim -- --schedules 1 --seed ${seed}${light} --trace`,
  ].join('\n');
}
