import { randomOf } from '../../sim/random.ts';
import { atLeast, atMost, figure, type Scored } from '../figure.ts';
import { playRound, type RoundResult } from '../fuzz-round.ts';
import type { Options } from '../options.ts';

const OUTCOMES = ['untouched', 'pruned', 'compacted', 'overflow'] as const;
/** One before a request, and one more where the provider refuses it. */
const MOST_CLIMBS = 2;
const NOTE_EVERY = 2_000;

/** Random conversations in random windows: each ends in valid requests that fit, or in the one named outcome. */
export async function scoreFuzz({ fuzzRounds, seed, note }: Options): Promise<Scored> {
  const results: RoundResult[] = [];
  const violations: string[] = [];
  for (let round = 0; round < fuzzRounds; round++) {
    if (round % NOTE_EVERY === 0) note(`round ${round} of ${fuzzRounds}, seed ${seed}`);
    const result = playRound(randomOf(seed, `round ${round}`));
    results.push(result);
    violations.push(...result.problems.map((problem) => `seed ${seed} round ${round}: ${problem}`));
  }
  const undue = results.flatMap(({ undue: some }, round) => some.map((one) => `round ${round}: ${one}`));
  for (const one of undue.slice(0, 5)) note(`overflow that need not be, ${one}`);
  const most = (part: (result: RoundResult) => number) =>
    results.reduce((sum, one) => Math.max(sum, part(one)), 0);
  const sum = (part: (result: RoundResult) => number) => results.reduce((all, one) => all + part(one), 0);
  const faulty = results.filter(({ problems }) => problems.length > 0).length;
  return {
    figures: [
      figure(
        'rounds that end in valid requests or in overflow',
        1 - faulty / fuzzRounds,
        'share',
        atLeast(1),
      ),
      ...OUTCOMES.map((outcome) =>
        figure(`  ${outcome}`, results.filter((one) => one.outcome === outcome).length, 'count'),
      ),
      figure('  overflows although what is never cut would have fitted', undue.length, 'count', atMost(0)),
      figure(
        'climbs of the relief ladder for one request, at most',
        most((one) => one.mostClimbs),
        'count',
        atMost(MOST_CLIMBS),
      ),
      figure(
        '  the slowest',
        most((one) => one.slowestClimbMs),
        'ms',
      ),
      figure(
        '  climbs',
        sum((one) => one.climbs),
        'count',
      ),
      figure(
        '  climbs that could do nothing',
        sum((one) => one.idleClimbs),
        'count',
      ),
      figure(
        '  requests checked',
        sum((one) => one.calls),
        'count',
      ),
    ],
    violations,
  };
}
