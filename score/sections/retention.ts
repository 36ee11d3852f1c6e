import { HAS_DATA } from '../../test/support/real-logs.ts';
import { NO_DATA } from '../data-files.ts';
import { atLeast, atMost, figure, type Figure, type Scored } from '../figure.ts';
import { PROBE_KINDS, type ProbeKind } from '../probes.ts';
import { RETENTION_BUDGETS, type RetentionRow, scoreRetention } from '../retention.ts';

/** Goals for every log at a fifth of its tokens. */
const GOALS: Record<ProbeKind, number> = {
  paths: 0.95,
  identifiers: 0.95,
  errors: 0.8,
  constraints: 1,
  pending: 1,
};
const GOAL_BUDGET = 0.2;

/** Share of the probes that a log still contains literally when it is shortened without a model, and for simpler methods. */
export async function retentionSection(): Promise<Scored> {
  if (!HAS_DATA) return { figures: [], violations: [], skipped: NO_DATA };
  const rows = await scoreRetention();
  const ours = rows.filter(({ contender }) => contender === 'troupe');
  const beaten = ours.flatMap((row) => beatenBy(row, rows));
  return {
    figures: [
      ...RETENTION_BUDGETS.flatMap((budget) => atBudget(rows, budget)),
      figure(
        'times a simpler way keeps more of a kind, over all logs and budgets',
        beaten.length,
        'count',
        atMost(0),
      ),
      ...beaten.map((name) => figure(`  ${name}`, 1, 'count')),
      figure(
        'largest share of its budget used',
        Math.max(...ours.map(({ used }) => used)),
        'ratio',
        atMost(1),
      ),
    ],
    violations: [],
  };
}

/** Our worst log, to which the goals apply, and all logs together for each contender. */
function atBudget(rows: readonly RetentionRow[], budget: number): Figure[] {
  const here = rows.filter((row) => row.budget === budget);
  const contenders = [...new Set(here.map(({ contender }) => contender))];
  const percent = `${budget * 100} %`;
  return PROBE_KINDS.flatMap((kind) => {
    const ours = here.filter(({ contender }) => contender === 'troupe');
    const worst = ours.toSorted((a, b) => a[kind].share - b[kind].share)[0];
    const goal = budget === GOAL_BUDGET ? atLeast(GOALS[kind]) : undefined;
    return [
      figure(
        `at ${percent}, ${kind}: worst file (${worst?.log ?? ''})`,
        worst?.[kind].share ?? NaN,
        'share',
        goal,
      ),
      ...contenders.map((contender) =>
        figure(
          `  ${contender}, all files`,
          together(
            here.filter((row) => row.contender === contender),
            kind,
          ),
          'share',
        ),
      ),
    ];
  });
}

function together(rows: readonly RetentionRow[], kind: ProbeKind): number {
  const kept = rows.reduce((sum, row) => sum + row[kind].kept, 0);
  const of = rows.reduce((sum, row) => sum + row[kind].of, 0);
  return of === 0 ? 1 : kept / of;
}

function beatenBy(row: RetentionRow, rows: readonly RetentionRow[]): string[] {
  const rivals = rows.filter(({ log, budget }) => log === row.log && budget === row.budget);
  return rivals.flatMap((rival) =>
    PROBE_KINDS.filter((kind) => rival[kind].kept > row[kind].kept).map(
      (kind) =>
        `${row.log} at ${row.budget}: ${rival.contender} keeps ${rival[kind].kept} ${kind}, not ${row[kind].kept}`,
    ),
  );
}
