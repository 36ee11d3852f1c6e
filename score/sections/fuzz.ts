import { randomOf } from '../../sim/random.ts';
import { atLeast, atMost, figure, type Scored } from '../figure.ts';
import { playRound, type RoundResult } from '../fuzz-round.ts';
import type { Options } from '../options.ts';

const OUTCOMES = ['untouched', 'pruned', 'compacted', 'overflow'] as const;
/** One before a request, and one more if the provider refuses it. */
const MOST_COMPACTIONS = 2;
const NOTE_EVERY = 2_000;

/** Random conversations in random windows: each ends in valid requests that fit, or in `overflow`. */
export async function scoreFuzz({ fuzzRounds, seed, note }: Options): Promise<Scored> {
  const results: RoundResult[] = [];
  const violations: string[] = [];
  for (let round = 0; round < fuzzRounds; round++) {
    if (round % NOTE_EVERY === 0) note(`round ${round} of ${fuzzRounds}, seed ${seed}`);
    const result = playRound(randomOf(seed, `round ${round}`));
    results.push(result);
    violations.push(...result.problems.map((problem) => `seed ${seed} round ${round}: ${problem}`));
  }
  const avoidable = results.flatMap(({ avoidable: some }, round) =>
    some.map((one) => `round ${round}: ${one}`),
  );
  for (const one of avoidable.slice(0, 5)) note(`avoidable overflow, ${one}`);
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
      figure(
        '  overflows although the part that must be kept would have fitted',
        avoidable.length,
        'count',
        atMost(0),
      ),
      figure(
        'compactions tried for one request, at most',
        most((one) => one.mostCompactions),
        'count',
        atMost(MOST_COMPACTIONS),
      ),
      figure(
        '  the slowest',
        most((one) => one.slowestMs),
        'ms',
      ),
      figure(
        '  compactions tried',
        sum((one) => one.compactions),
        'count',
      ),
      figure(
        '  compactions without effect',
        sum((one) => one.idleCompactions),
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
