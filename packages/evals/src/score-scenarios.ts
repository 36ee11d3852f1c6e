import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { TroupeError } from './troupe.ts';
import type { Company } from './company.ts';
import { meanOf, rateOf } from './interval.ts';
import { playToItsEnd } from './play-conversation.ts';
import { type Claim, type Scenario, type ScenarioOptions, scenariosOf } from './scenario.ts';
import { type Judged, type Score, scoreOfClaim, takeScore } from './score.ts';
import { folderOfRun } from './kept-runs.ts';
import type { RunScore, Scorecard, ScoredRun, ScoreSummary } from './scorecard.ts';

/** A scenario to be scored: one of `describeConversation`, or a name and the people. */
export type ScenarioToScore = Pick<Scenario, 'name' | 'users'> &
  Partial<Pick<Scenario, 'claims' | 'options'>>;

/** Settings of `scoreScenarios`: they come before the scenario's own options. */
export interface ScoreSettings extends ScenarioOptions {
  /** The scores, by name. */
  scores: Readonly<Record<string, Score>>;
  /** Runs of each scenario, with seeds from 1 on. Default 1. */
  repeats?: number | undefined;
  /**
   * Folder that keeps the data of each run, in `runs/<conversation>`, in place of those of an earlier run of that name: that of
   * `writeScores`, so that `troupe eval show` finds both. Default: runs are in memory.
   */
  keep?: string | undefined;
}

/**
 * Plays each scenario several times, one run after the other, and scores each run. The claims of a scenario are
 * scores too: how often does each hold? Throws `config_invalid`: also if two scenarios or scores have the same name; and `data_unwritable`.
 *
 *     const scores = await scoreScenarios(company, evals.scenarios, { scores: { cost, polite: judge({ … }) }, repeats: 10 });
 */
export async function scoreScenarios(
  company: Company,
  scenarios: readonly ScenarioToScore[],
  { scores, repeats = 1, keep, ...settings }: ScoreSettings,
): Promise<Scorecard> {
  if (!Number.isInteger(repeats) || repeats < 1)
    throw new TroupeError('config_invalid', `repeats is ${repeats}, and has to be a whole number from 1 on`);
  refuseTwice(
    'scenarios',
    scenarios.map(({ name }) => name),
  );
  const judges: Judged = { calls: 0, tokens: 0, dollars: 0 };
  const card: Scorecard = { version: 1, repeats, scenarios: [], judges };
  for (const scenario of scenarios) {
    const { name, users, claims = claimsOf(scenario), options } = scenario;
    const all = [
      ...Object.entries(claims).map(([words, claim]) => [words, scoreOfClaim(claim)] as const),
      ...Object.entries(scores),
    ];
    refuseTwice(
      `scores of "${name}"`,
      all.map(([score]) => score),
    );
    const runs: ScoredRun[] = [];
    for (let seed = 1; seed <= repeats; seed += 1) {
      const troupe = settings.troupe ?? options?.troupe;
      const conversation = nameOfRun(name, seed);
      const play = { ...options, ...settings, troupe, seed, conversation };
      const run = await playToItsEnd(
        company,
        users,
        play,
        keep === undefined ? null : emptied(keep, conversation),
      );
      const taken: RunScore[] = [];
      for (const [score, take] of all) {
        const { taken: value, judged } = await takeScore(score, take, run, { seed, troupe });
        taken.push(value);
        if (judged) addTo(judges, judged);
      }
      runs.push({ seed, ...(keep !== undefined && { conversation }), scores: taken });
    }
    const summaries = all.map(([score, { better = 'more' }]) =>
      summaryOf(
        score,
        better,
        runs.flatMap((run) => run.scores.filter((each) => each.score === score)),
      ),
    );
    card.scenarios.push({ scenario: name, scores: summaries, runs });
  }
  return card;
}

/** Those that all scenarios have. */
function claimsOf({ name, users, options }: ScenarioToScore): Readonly<Record<string, Claim>> {
  return scenariosOf((scenario) => scenario(name, users, {}, options))[0]?.claims ?? {};
}

/** Runs have conversations of their own, so that a recording gives each of them its own answers. */
function nameOfRun(scenario: string, seed: number): string {
  return `scored-${createHash('sha256').update(scenario).digest('hex').slice(0, 12)}-${seed}`;
}

/** The folder of a run, without what an earlier run of that name has left. */
function emptied(keep: string, conversation: string): string {
  const folder = folderOfRun(keep, conversation);
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch (cause) {
    const text = `cannot keep the data of runs in ${folder}: ${String(cause)}`;
    throw new TroupeError('data_unwritable', text, { folder }, { cause });
  }
  return folder;
}

function summaryOf(score: string, better: ScoreSummary['better'], taken: readonly RunScore[]): ScoreSummary {
  const values = taken.flatMap((each) => (each.kind === 'scored' ? [each.value] : []));
  const isRate = values.length > 0 && values.every((value) => typeof value === 'boolean');
  const estimate = isRate ? rateOf(values) : meanOf(values.map(Number));
  const failed = taken.filter(({ kind }) => kind === 'failed').length;
  return { score, measure: isRate ? 'rate' : 'mean', better, n: values.length, failed, ...estimate };
}

function addTo(all: Judged, { calls, tokens, dollars }: Judged): void {
  all.calls += calls;
  all.tokens += tokens;
  all.dollars = all.dollars === null || dollars === null ? null : all.dollars + dollars;
}

function refuseTwice(what: string, names: readonly string[]): void {
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined)
    throw new TroupeError('config_invalid', `two ${what} have the name "${twice}"`, { name: twice });
}
