import { DEFAULT_POLICY } from '../../src/context/index.ts';
import { HAS_DATA } from '../../test/support/real-logs.ts';
import { chained, NO_DATA, SESSION } from '../data-files.ts';
import { atMost, figure, type Figure, type Scored } from '../figure.ts';
import type { Options } from '../options.ts';
import { type PricedReplay, priceReplay } from '../price-replay.ts';
import { timedLog } from '../timed-log.ts';

const WINDOWS = [200_000, 128_000];
/** The session once, and repeated until the log has about 1,500 model calls. */
const LENGTHS = [
  { times: 1, isLong: false },
  { times: 3.3, isLong: true },
];
const GOAL = 0.6;

/** Cost of the default policy relative to a log that only grows, at Anthropic's prices, answers included. */
export async function scorePolicy({ quick, note }: Options): Promise<Scored> {
  if (!HAS_DATA) return { figures: [], violations: [], skipped: NO_DATA };
  const session = await timedLog(SESSION);
  const figures: Figure[] = [];
  for (const { times, isLong } of LENGTHS.slice(0, quick ? 1 : 2)) {
    const log = chained([session], Math.floor(session.length * times));
    const whole = priceReplay(log, { window: null });
    const wholeForEver = priceReplay(log, { window: null, ignoreTtl: true });
    for (const window of WINDOWS) {
      const name = `${whole.calls} calls in ${window / 1_000}k`;
      note(`${name}, trigger ${DEFAULT_POLICY.trigger}, target ${DEFAULT_POLICY.target}`);
      const ours = priceReplay(log, { window });
      const forEver = priceReplay(log, { window, ignoreTtl: true });
      figures.push(...costFigures(name, ours, whole, isLong));
      figures.push(figure('  the same, TTL ignored', forEver.cost / wholeForEver.cost, 'ratio'));
    }
  }
  return { figures, violations: [] };
}

function costFigures(name: string, ours: PricedReplay, whole: PricedReplay, isLong: boolean): Figure[] {
  const compactions = ours.prunes + ours.compactions;
  const perThousand = (count: number) => (count / ours.calls) * 1_000;
  return [
    figure(
      `${name}: cost relative to append-only, with a model's summaries`,
      (ours.cost + ours.summaryCost) / whole.cost,
      'ratio',
      isLong ? atMost(GOAL) : undefined,
    ),
    figure('  without a model', ours.cost / whole.cost, 'ratio', isLong ? atMost(GOAL) : undefined),
    figure('  prunes per 1,000 calls', perThousand(ours.prunes), 'count'),
    figure('  compactions per 1,000 calls', perThousand(ours.compactions), 'count'),
    figure('  cache rewritten per compaction', ours.compactionCost / compactions, 'tokens'),
    figure('  cost of one summary by a model', ours.summaryCost / Math.max(1, ours.compactions), 'tokens'),
    figure('  input read from the cache', ours.hitRate, 'share'),
    figure('  mean prompt', ours.mean, 'tokens'),
    figure('  largest prompt', ours.largest, 'tokens'),
    figure('  largest prompt, append-only', whole.largest, 'tokens'),
  ];
}
