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
  /**
   * The database is the rig's own, and its primary is killed as well: one of a replica set of three, or the one server of
   * PostgreSQL, which is started again.
   */
  killDatabase: boolean;
  /** On a Cluster or behind Sentinels the primary of the queue is killed in place of the cuts of its file. `none`: PostgreSQL holds the queue. */
  redis: 'single' | 'valkey' | 'cluster' | 'sentinel' | 'none';
}

export const USAGE =
  'npm run rig -- [--seconds 60] [--seed N] [--json] [--keep] [--calm] [--strict] [--postgres] [--kill-database] [--redis valkey|cluster|sentinel|none]';

const REDIS: readonly RigOptions['redis'][] = ['single', 'valkey', 'cluster', 'sentinel', 'none'];

function isRedis(value: string): value is RigOptions['redis'] {
  return REDIS.some((each) => each === value);
}

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
      'kill-database': { type: 'boolean', default: false },
      redis: { type: 'string', default: 'single' },
    },
  });
  const { json, keep, calm, strict, postgres } = values;
  const [seconds, seed] = [Number(values.seconds), Number(values.seed)];
  if (!Number.isInteger(seconds) || seconds < 1 || !Number.isInteger(seed) || seed < 0)
    throw new Error(`--seconds and --seed are whole numbers: ${USAGE}`);
  const { redis } = values;
  if (!isRedis(redis)) throw new Error(`--redis is valkey, cluster, sentinel or none: ${USAGE}`);
  if (redis === 'none' && !postgres) throw new Error(`--redis none needs --postgres: ${USAGE}`);
  const killDatabase = values['kill-database'];
  return { seconds, seed, json, keep, calm, strict, postgres, killDatabase, redis };
}
