import { loadEvals } from '../evals/evals-package.ts';
import { print, printJson } from '../render/output.ts';

/** Compares two files of scores. The exit code is 1 if a score is worse. */
export async function evalCompare(
  before: string,
  after: string,
  { json }: { json?: boolean },
): Promise<void> {
  const evals = await loadEvals();
  const [was, is] = [evals.readScorecard(before), evals.readScorecard(after)];
  const compared = evals.compareScores(was, is);
  const worse = evals.worseOnes(compared);
  if (json) printJson({ ok: worse.length === 0, compared });
  else print(evals.scoresTable(is, was, [after, before]));
  if (worse.length > 0) process.exitCode = 1;
}
