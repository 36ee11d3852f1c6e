import { writeFileSync } from 'node:fs';
import type { Plugin } from 'vitest/config';
import type { Reporter, TestModule } from 'vitest/node';

/** Counts of a test run. `skippedNames` tells `test/run.ts` why tests were skipped. */
export interface TestCounts {
  passed: number;
  failed: number;
  skipped: number;
  skippedNames: string[];
}

/**
 * Environment variable with the path for the counts. `test/run.ts` prints the line itself, after all output of
 * vitest.
 */
export const COUNTS_FILE_ENV = 'TROUPE_TEST_COUNTS_FILE';

export function countLine({ passed, failed, skipped }: TestCounts): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

/** Counts tests. A file or suite that fails outside its tests, and an unhandled error, count as one failure each. */
function countTests(modules: readonly TestModule[], unhandledErrors: number): TestCounts {
  const counts: TestCounts = { passed: 0, failed: unhandledErrors, skipped: 0, skippedNames: [] };
  for (const module of modules) {
    const own = [module, ...module.children.allSuites()];
    const broken = own.filter((suite) => suite.errors().length > 0).length;
    const tests = [...module.children.allTests()];
    for (const test of tests) {
      const { state } = test.result();
      if (state === 'passed') counts.passed += 1;
      else if (state === 'skipped') counts.skippedNames.push(test.fullName);
      // A test that is still pending at the end of the run was interrupted.
      else counts.failed += 1;
    }
    counts.failed += broken;
    const unexplained = !module.ok() && broken === 0 && tests.every((test) => test.ok());
    if (unexplained) counts.failed += 1;
  }
  counts.skipped = counts.skippedNames.length;
  return counts;
}

function createCountReporter(): Reporter {
  return {
    onTestRunEnd(modules, unhandledErrors) {
      const counts = countTests(modules, unhandledErrors.length);
      const file = process.env[COUNTS_FILE_ENV];
      if (file) writeFileSync(file, JSON.stringify(counts));
      else console.log(countLine(counts));
    },
  };
}

/** A plugin rather than an entry of `reporters`, so that a `--reporter` on the command line does not displace it. */
export function countReporterPlugin(): Plugin {
  return {
    name: 'troupe:count-tests',
    configureVitest({ vitest }) {
      vitest.config.reporters.push(createCountReporter());
    },
  };
}
