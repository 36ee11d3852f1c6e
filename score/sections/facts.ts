import { HAS_DATA } from '../../test/support/real-logs.ts';
import { DATA_FILES, namedLogs, NO_DATA } from '../data-files.ts';
import { FACT_KINDS } from '../facts.ts';
import { keptAt, pointsOf, type Way, WAYS } from '../fact-points.ts';
import { atLeast, figure, type Figure, type Goal, type Scored } from '../figure.ts';
import type { Options } from '../options.ts';

const MIN_LOG_TOKENS = 4_000;
/** As many as 14 and 16 of 18. */
const GOALS: Partial<Record<Way, Goal>> = {
  extraction: atLeast(14 / 18),
  'extraction at 2x': atLeast(16 / 18),
};

interface Tally {
  kept: number;
  of: number;
}

/** Further sessions with recorded summaries, as absolute paths. */
const MORE = (process.env['SCORE_LOGS'] ?? '').split(',').filter((file) => file !== '');

/** Facts that are needed after a point of a log, and what of them each way of making it short keeps. */
export async function scoreFacts({ quick, note }: Options): Promise<Scored> {
  if (!HAS_DATA) return { figures: [], violations: [], skipped: NO_DATA };
  const tallies = new Map<string, Tally>();
  let points = 0;
  let recorded = 0;
  for (const file of [...DATA_FILES, ...MORE]) {
    note(file);
    for (const [, log] of await namedLogs(file, quick)) {
      if (log.reduce((sum, { tokens }) => sum + tokens, 0) < MIN_LOG_TOKENS) continue;
      for (const point of pointsOf(file, log)) {
        points += 1;
        if (point.recorded !== null) recorded += 1;
        const { facts, kept } = keptAt(point);
        for (const [way, isKept] of kept)
          for (const [at, { kind, age }] of facts.entries())
            for (const key of ['all', kind, age, file]) {
              const place = `${point.recorded === null ? '' : 'recorded '}${way}|${key}`;
              const tally = tallies.get(place) ?? { kept: 0, of: 0 };
              tallies.set(place, { kept: tally.kept + (isKept[at] ? 1 : 0), of: tally.of + 1 });
            }
      }
    }
  }
  const figures: Figure[] = [
    figure('points', points, 'count'),
    figure('  with a recorded summary of a model', recorded, 'count'),
  ];
  for (const place of ['', 'recorded '])
    for (const way of WAYS) {
      const all = tallies.get(`${place}${way}|all`);
      if (!all) continue;
      figures.push(
        figure(
          `${way}${place === '' ? '' : ', at recorded summaries'}: facts kept`,
          all.kept / all.of,
          'share',
          place === '' ? GOALS[way] : undefined,
        ),
      );
      figures.push(figure('  facts', all.of, 'count'));
      for (const key of [...FACT_KINDS, 'old', 'middle', 'new', ...DATA_FILES]) {
        const one = tallies.get(`${place}${way}|${key}`);
        if (one) figures.push(figure(`  ${key}, of ${one.of}`, one.kept / one.of, 'share'));
      }
    }
  return { figures, violations: [] };
}
