import { scoreCounting, scoreEstimator } from '../estimator.ts';
import { HAS_DATA } from '../../test/support/real-logs.ts';
import { NO_DATA } from '../data-files.ts';
import { atMost, below, figure, type Figure, type Scored } from '../figure.ts';

/** The methods that the engine uses: with the anchor of the last request, or after a compaction without one. */
const GOAL_OF = new Set(['anchor', 'no anchor']);
const MOST_MS = 200;

/** Error of the estimate against the providers' reports, and the time to count text that is made to be slow. */
export async function estimatorSection(): Promise<Scored> {
  const rows = await scoreEstimator();
  const errors = rows.flatMap(({ model, how, requests, p50, p95 }): Figure[] => [
    figure(`${model}, ${how}: p95 error of ${requests} requests`, p95, 'share', goalFor(how)),
    figure(`${model}, ${how}: p50`, p50, 'share'),
  ]);
  const counting = scoreCounting().map(({ text, ms }) => figure(`1 MB of ${text}`, ms, 'ms', below(MOST_MS)));
  return {
    figures: [...errors, ...counting],
    violations: [],
    ...(!HAS_DATA && { skipped: `${NO_DATA}: only counting` }),
  };
}

function goalFor(how: string) {
  return GOAL_OF.has(how) ? atMost(0.1) : undefined;
}
