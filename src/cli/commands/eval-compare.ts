import { compareScores, worseOnes } from '../../evals/compare-scores.ts';
import { readScorecard } from '../../evals/scorecard.ts';
import { scoresTable } from '../../evals/scores-table.ts';
import { print, printJson } from '../render/output.ts';

/** Compares two files of scores. The exit code is 1 if a score is worse. */
export function evalCompare(before: string, after: string, { json }: { json?: boolean }): void {
  const [was, is] = [readScorecard(before), readScorecard(after)];
  const compared = compareScores(was, is);
  const worse = worseOnes(compared);
  if (json) printJson({ ok: worse.length === 0, compared });
  else print(scoresTable(is, was, [after, before]));
  if (worse.length > 0) process.exitCode = 1;
}
