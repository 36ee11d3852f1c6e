import { stripVTControlCharacters } from 'node:util';
import { howToShow } from './kept-runs.ts';
import { clip } from './show-run.ts';
import { type ComparedScore, compareScores } from './compare-scores.ts';
import type { Scorecard, ScoreSummary } from './scorecard.ts';

const MOST_NAME = 60;

/**
 * A table for the terminal, which is Markdown too: for a comment or the summary of a job. With a baseline: what has changed. If
 * the data of runs were kept, it ends with how to look at them; `folders` are those of the scores and of the baseline.
 */
export function scoresTable(
  scores: Scorecard,
  before?: Scorecard,
  folders: readonly [after: string, before?: string] = ['FOLDER'],
): string {
  const rows = compareScores(before ?? scores, scores).map((row) => rowOf(row, before !== undefined));
  const heads = ['scenario', 'score', 'mean [95 %]', 'runs', ...(before ? ['before', ''] : [])];
  const table = [heads, heads.map(() => ''), ...rows];
  const widths = heads.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0), 3));
  const lines = table.map((row, at) => {
    const cells = widths.map((width, column) =>
      at === 1 ? '-'.repeat(width) : (row[column] ?? '').padEnd(width),
    );
    return `| ${cells.join(' | ')} |`;
  });
  const { calls, tokens, dollars } = scores.judges;
  const price = dollars === null ? 'unknown' : String(Number(dollars.toFixed(4)));
  const judged = calls === 0 ? [] : ['', `Judges: ${calls} calls, ${tokens} tokens, dollars: ${price}`];
  const how = howToShow(scores, ...folders);
  return [...lines, ...judged, ...(how === null ? [] : ['', how])].join('\n');
}

function rowOf({ scenario, score, change, before, after }: ComparedScore, isCompared: boolean): string[] {
  const row = [cell(scenario), cell(score), summaryWords(after), runsWords(after)];
  return isCompared ? [...row, summaryWords(before), change] : row;
}

/** A mean with its interval: `0.8 [0.49, 0.943]`. */
export function summaryWords(summary: ScoreSummary | null): string {
  if (summary === null || summary.mean === null) return '-';
  const { mean, low, high } = summary;
  return low === null || high === null ? short(mean) : `${short(mean)} [${short(low)}, ${short(high)}]`;
}

function runsWords(summary: ScoreSummary | null): string {
  if (summary === null) return '-';
  return summary.failed > 0 ? `${summary.n} (${summary.failed} failed)` : String(summary.n);
}

function short(value: number): string {
  return String(Number(value.toPrecision(3)));
}

/** Names are of a developer's own; control characters and borders would break the table. */
function cell(text: string): string {
  // oxlint-disable-next-line no-control-regex
  const plain = stripVTControlCharacters(text).replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ');
  return clip(plain, MOST_NAME).replaceAll('|', '\\|');
}
