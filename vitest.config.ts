import { defineConfig } from 'vitest/config';
import { countReporterPlugin } from './test/reporter.ts';

export default defineConfig({
  plugins: [countReporterPlugin()],
  test: {
    include: ['test/**/*.test.ts'],
    // Tests start processes and kill them: a test file gets a process of its own.
    pool: 'forks',
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
