import { parseArgs } from 'node:util';

export interface RigOptions {
  seconds: number;
  seed: number;
  json: boolean;
  keep: boolean;
  /** Load without faults: what the machine can do, to hold a bad run against. */
  calm: boolean;
  /** A missed goal fails the run. Else only violations do, and a run that did not do half of what it was to do. */
  strict: boolean;
}

export const USAGE = 'npm run rig -- [--seconds 60] [--seed N] [--json] [--keep] [--calm] [--strict]';

/** Throws with the usage for anything else. */
export function readOptions(args: string[]): RigOptions {
  const { values } = parseArgs({
    args,
    options: {
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
      json: { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
      calm: { type: 'boolean', default: false },
      strict: { type: 'boolean', default: false },
    },
  });
  const [seconds, seed] = [Number(values.seconds), Number(values.seed)];
  if (!Number.isInteger(seconds) || seconds < 1 || !Number.isInteger(seed) || seed < 0)
    throw new Error(`--seconds and --seed are whole numbers: ${USAGE}`);
  return { seconds, seed, json: values.json, keep: values.keep, calm: values.calm, strict: values.strict };
}
