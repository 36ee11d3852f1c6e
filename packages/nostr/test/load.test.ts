import { expect, test } from 'vitest';
import { problemsOf, runLoad } from './load.ts';

test('with duplicates, disorder, forgeries, disconnects and an hour away, each valid event is stored and wakes once', async () => {
  const report = await runLoad({ events: 400, seed: 8 });
  expect(problemsOf(report)).toEqual([]);
  expect(report).toMatchObject({ valid: 300, stored: 300, forged: 100, forgedStored: 0, storedTwice: 0 });
  expect(report.duplicates).toBeGreaterThan(50);
  expect(report.disconnects).toBeGreaterThan(5);
});
