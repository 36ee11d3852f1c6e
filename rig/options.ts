import { parseArgs } from 'node:util';

export interface RigOptions {
  seconds: number;
  seed: number;
  json: boolean;
  keep: boolean;
  /** Load without faults: the capacity of the machine, for comparison with a bad run. */
  calm: boolean;
  /**
   * A missed goal fails the run. Without this, only violations and runs with less than half of the planned work do.
   */
  strict: boolean;
  /** The log is in PostgreSQL, not in MongoDB. */
  postgres: boolean;
  /** The queue is on a Cluster or behind Sentinels, and their primary is killed in place of the cuts of its file. */
  redis: 'single' | 'cluster' | 'sentinel';
}

export const USAGE =
  'npm run rig -- [--seconds 60] [--seed N] [--json] [--keep] [--calm] [--strict] [--postgres] [--redis cluster|sentinel]';

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
      postgres: { type: 'boolean', default: false },
      redis: { type: 'string', default: 'single' },
    },
  });
  const { json, keep, calm, strict, postgres } = values;
  const [seconds, seed] = [Number(values.seconds), Number(values.seed)];
  if (!Number.isInteger(seconds) || seconds < 1 || !Number.isInteger(seed) || seed < 0)
    throw new Error(`--seconds and --seed are whole numbers: ${USAGE}`);
  const { redis } = values;
  if (redis !== 'single' && redis !== 'cluster' && redis !== 'sentinel')
    throw new Error(`--redis is cluster or sentinel: ${USAGE}`);
  return { seconds, seed, json, keep, calm, strict, postgres, redis };
}
