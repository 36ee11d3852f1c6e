import { once } from 'node:events';
import { createEvalApp } from '../evals/eval-app.ts';
import { loadEvals } from '../evals/evals-package.ts';
import { createOpenRuns } from '../evals/open-runs.ts';
import { dataOf, readShownScores, type ShownScores } from '../evals/shown-scores.ts';
import { serveHttp } from '../../http/api/index.ts';
import { onInterrupt, openBrowser } from '../process/terminal.ts';
import { paint, print, printJson, table } from '../render/output.ts';

interface ShowOptions {
  port: number;
  open?: boolean;
  json?: boolean;
}

/**
 * Shows scores and the conversations they stand on, beside a baseline, until interrupted. For this machine only: the pages ask
 * nobody for a credential.
 */
export async function evalShow(
  after: string,
  before: string | undefined,
  options: ShowOptions,
): Promise<void> {
  const evals = await loadEvals();
  const shown = readShownScores(evals, after, before);
  await using runs = createOpenRuns(evals);
  const stop = new AbortController();
  const stopped = once(stop.signal, 'abort');
  const dispose = onInterrupt(() => stop.abort());
  try {
    const server = await serveHttp(createEvalApp(shown, runs), { port: options.port });
    const page = `${server.url}/`;
    if (options.json) printJson({ url: server.url, page, ...countRuns(shown), ...foldersOf(shown) });
    else showBanner(page, shown);
    if (options.open) await openBrowser(page);
    await stopped;
    await server.close();
  } finally {
    dispose();
  }
}

function foldersOf({ before, after }: ShownScores) {
  return { folder: after.folder, baseline: before?.folder ?? null };
}

function countRuns({ after }: ShownScores): { runs: number; kept: number } {
  const runs = after.card.scenarios.flatMap((scenario) => scenario.runs);
  return { runs: runs.length, kept: runs.filter((run) => dataOf(after, run.conversation) !== null).length };
}

function showBanner(page: string, shown: ShownScores): void {
  const { folder, baseline } = foldersOf(shown);
  const { runs, kept } = countRuns(shown);
  const rows = [
    ['Page', paint('cyan', page)],
    ['Scores', folder],
    ['Baseline', baseline ?? 'none: name its folder to compare'],
    ['Runs', `${runs}, ${kept} with their conversation`],
  ];
  print(table(rows.map(([name = '', value = '']) => [paint('dim', name), value])));
  print(paint('dim', 'Nothing is written to these folders. Ctrl-C stops.'));
}
