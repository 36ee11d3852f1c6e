import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { countReporterPlugin } from './test/reporter.ts';

const { MONGODB_URL, REDIS_URL, POSTGRES_URL, TROUPE_TEST_DISTRIBUTED } = process.env;
/** Those that the distributed project runs on, see `test/support/places.ts`. */
const HAS_SERVICES = Boolean(
  TROUPE_TEST_DISTRIBUTED === 'postgres' ? POSTGRES_URL : MONGODB_URL && REDIS_URL,
);

/**
 * Run once embedded and once on MongoDB and Redis, see `test/support/mode.ts`: what users see of conversations, and where
 * the engine relies on leases, clocks and reads of other processes. Everything else stands on the store's port, which
 * its conformance suite holds all adapters to.
 */
const BOTH_MODES = [
  'test/main-job.test.ts',
  'test/scenarios/*.test.ts',
  'test/asking/*.test.ts',
  'test/http/{attachments,budgets,commands,delete,events,health,inbox,large-events,queues,retry-fork}.test.ts',
  'test/http/{state-stream,stream,stuck,tasks,tenants,unread-streams,while-busy}.test.ts',
  'test/engine/{acceptance-crash,cancel,checkpoints,delegation,forgotten,fork,fork-crash,import-leases}.test.ts',
  'test/engine/{own-lease,questions,recovery,rerun-crash,schedules,store-errors,sweeper,taken-ids,tenants}.test.ts',
  'test/engine/{moved-time,two-processes}.test.ts',
];

const shared = {
  // Tests start processes and kill them: never in threads. Files share a process, one after the other: to load the code
  // for each anew would take as long as half of the tests.
  pool: 'forks',
  isolate: false,
  setupFiles: 'test/same-globals.ts',
  // The examples ignore any configured API keys: tests never call a vendor.
  env: { TROUPE_PROVIDER: 'scripted' },
  // For what hangs: on a shared machine a test may take several times as long as on a quiet one.
  testTimeout: 240_000,
  hookTimeout: 240_000,
  expect: { poll: { timeout: 60_000 } },
} as const;

export default defineConfig({
  plugins: [countReporterPlugin()],
  test: {
    // Tests wait for processes and clocks as much as they work; by default one core of two would stand idle.
    maxWorkers: Math.max(availableParallelism() + 1, 3),
    projects: [
      {
        test: {
          ...shared,
          name: 'embedded',
          include: ['test/**/*.test.ts', 'packages/*/test/**/*.test.ts', 'examples/**/*.eval.ts'],
          exclude: ['test/support/no-services.test.ts', 'test/clis/**'],
        },
      },
      {
        test: {
          ...shared,
          name: 'distributed',
          env: { ...shared.env, TROUPE_TEST_MODE: 'distributed' },
          include: HAS_SERVICES ? BOTH_MODES : ['test/support/no-services.test.ts'],
        },
      },
    ],
  },
});
