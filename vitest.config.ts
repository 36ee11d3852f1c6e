import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { countReporterPlugin } from './test/reporter.ts';

const HAS_SERVICES = Boolean(process.env['MONGODB_URL'] && process.env['REDIS_URL']);

/** What Troupe does, whatever it stands on: run once embedded and once on MongoDB and Redis. See `test/support/mode.ts`. */
const BEHAVIOUR = [
  'test/main-job.test.ts',
  'test/scenarios/**',
  'test/http/**',
  'test/engine/**',
  'test/asking/**',
];
/** Worlds of faults in the embedded store; `sim` and `rig` are theirs in the distributed mode. */
const EMBEDDED_ONLY = [
  'test/engine/{world,kill,interleavings}.test.ts',
  'test/engine/{sessions,steer,supervision}-world.test.ts',
  'test/engine/{steer,supervision,workflows}-crash.test.ts',
];

const shared = {
  // Tests start processes and kill them: never in threads. Files share a process, one after the other: to load the code
  // for each anew would take as long as half of the tests.
  pool: 'forks',
  isolate: false,
  setupFiles: 'test/same-globals.ts',
  // For what hangs: on a shared machine a test may take several times as long as on a quiet one.
  testTimeout: 240_000,
  hookTimeout: 240_000,
  expect: { poll: { timeout: 20_000 } },
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
          include: ['test/**/*.test.ts', 'packages/*/test/**/*.test.ts'],
          exclude: ['test/support/no-services.test.ts', 'test/clis/**'],
        },
      },
      {
        test: {
          ...shared,
          name: 'distributed',
          env: { TROUPE_TEST_MODE: 'distributed' },
          include: HAS_SERVICES ? BEHAVIOUR.map(testFiles) : ['test/support/no-services.test.ts'],
          exclude: EMBEDDED_ONLY,
        },
      },
    ],
  },
});

function testFiles(pattern: string): string {
  return pattern.endsWith('**') ? `${pattern}/*.test.ts` : pattern;
}
