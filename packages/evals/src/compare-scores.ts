import { differenceOf } from './interval.ts';
import type { Scorecard, ScoreSummary } from './scorecard.ts';

/**
 * `better` and `worse`: the 95 % interval of the difference excludes zero, or a score fails in more runs than before. `same`:
 * no difference is shown. `new` and `gone`: the other side has no such score, or another measure.
 */
export type Change = 'better' | 'same' | 'worse' | 'new' | 'gone';

/** A score of a scenario, before and after. */
export interface ComparedScore {
  /** Name of the scenario. */
  scenario: string;
  /** Name of the score. */
  score: string;
  /** What became of it. */
  change: Change;
  /** Null: there was none. */
  before: ScoreSummary | null;
  /** Null: there is none any more. */
  after: ScoreSummary | null;
}

/** Compares scores with a baseline. In the order of `after`; what is gone comes last. */
export function compareScores(before: Scorecard, after: Scorecard): ComparedScore[] {
  const earlier = byName(before);
  const later = byName(after);
  const compared = [...later].map(([key, { scenario, summary }]): ComparedScore => {
    const was = earlier.get(key)?.summary ?? null;
    return { scenario, score: summary.score, change: changeOf(was, summary), before: was, after: summary };
  });
  const gone = [...earlier]
    .filter(([key]) => !later.has(key))
    .map(([, { scenario, summary }]): ComparedScore => {
      return { scenario, score: summary.score, change: 'gone', before: summary, after: null };
    });
  return [...compared, ...gone];
}

/** A score is worse: for the exit code of a command, or an assertion. */
export function worseOnes(compared: readonly ComparedScore[]): string[] {
  return compared.flatMap(({ scenario, score, change }) =>
    change === 'worse' ? [`${scenario}: ${score}`] : [],
  );
}

function byName({ scenarios }: Scorecard): Map<string, { scenario: string; summary: ScoreSummary }> {
  return new Map(
    scenarios.flatMap(({ scenario, scores }) =>
      scores.map((summary) => [JSON.stringify([scenario, summary.score]), { scenario, summary }] as const),
    ),
  );
}

function changeOf(before: ScoreSummary | null, after: ScoreSummary): Change {
  if (before === null) return 'new';
  if (after.failed / runsOf(after) > before.failed / runsOf(before)) return 'worse';
  if (before.measure !== after.measure) return 'new';
  const difference = differenceOf(before, after);
  if (difference === null || (difference.low <= 0 && difference.high >= 0)) return 'same';
  const isMore = difference.low > 0;
  return isMore === (after.better === 'more') ? 'better' : 'worse';
}

function runsOf({ n, failed }: ScoreSummary): number {
  return Math.max(1, n + failed);
}
