import { readFileSync } from 'node:fs';
import * as z from 'zod';
import { TroupeError } from './troupe.ts';

const VERSION = 1;

/** What became of a score in one run. `none`: it has no value there. `failed`: it threw, or its judge did not answer. */
export const RunScore = z.discriminatedUnion('kind', [
  z.object({
    score: z.string(),
    kind: z.literal('scored'),
    value: z.union([z.number(), z.boolean()]),
    why: z.string(),
  }),
  z.object({ score: z.string(), kind: z.literal('none'), why: z.string() }),
  z.object({ score: z.string(), kind: z.literal('failed'), why: z.string() }),
]);
export type RunScore = z.infer<typeof RunScore>;

/** A score over all runs of a scenario. */
export const ScoreSummary = z.object({
  /** Name of the score. */
  score: z.string(),
  /** `rate`: the share of runs with true, with Wilson's interval. `mean`: of numbers, with the interval of Student's t. */
  measure: z.enum(['rate', 'mean']),
  /** Which values are better. */
  better: z.enum(['more', 'less']),
  /** Runs that have a value. */
  n: z.int().min(0),
  /** Runs in which the score failed. */
  failed: z.int().min(0),
  /** Null: no run has a value. */
  mean: z.number().nullable(),
  /** Lower end of the 95 % interval. Null: unknown, as with a single number. */
  low: z.number().nullable(),
  /** Upper end. */
  high: z.number().nullable(),
});
export type ScoreSummary = z.infer<typeof ScoreSummary>;

/** One run of a scenario. */
export const ScoredRun = z.object({
  /** Number of the run, from 1. */
  seed: z.int(),
  /** Its conversation, if its data were kept: they are in `runs/<conversation>`. */
  conversation: z.string().optional(),
  scores: z.array(RunScore),
});
export type ScoredRun = z.infer<typeof ScoredRun>;

/** A scenario with the runs of it. */
export const ScoredScenario = z.object({
  scenario: z.string(),
  scores: z.array(ScoreSummary),
  runs: z.array(ScoredRun),
});
export type ScoredScenario = z.infer<typeof ScoredScenario>;

/** Scores of scenarios over repeated runs. Nothing in it differs between two replays of the same recording. */
export const Scorecard = z.object({
  version: z.literal(VERSION),
  /** Runs of each scenario. */
  repeats: z.int().min(1),
  /** The scenarios, in the order in which they were given. */
  scenarios: z.array(ScoredScenario),
  /** What all judges took. Dollars are null if a model has no price. */
  judges: z.object({ calls: z.int(), tokens: z.number(), dollars: z.number().nullable() }),
});
export type Scorecard = z.infer<typeof Scorecard>;

/** Reads `scores.json`. Throws `config_invalid`. */
export function readScorecard(file: string): Scorecard {
  try {
    return Scorecard.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (cause) {
    const why = cause instanceof z.ZodError ? z.prettifyError(cause) : String(cause);
    throw new TroupeError('config_invalid', `there are no scores in ${file}: ${why}`, { file }, { cause });
  }
}
