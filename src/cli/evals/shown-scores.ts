import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { TroupeError } from '../../base/errors.ts';
import type { ComparedScore, EvalsPackage, Scorecard, ScoredRun, ScoredScenario } from './evals-package.ts';

/** Of what is compared: the baseline, or the scores that are looked at. */
export type Side = 'before' | 'after';

/** Scores and where the data of their runs are. */
export interface StoredScores {
  folder: string;
  card: Scorecard;
  scenarios: ReadonlyMap<string, ScoredScenario>;
  /** Data directories by conversation. */
  kept: ReadonlyMap<string, string>;
}

/** What the pages of `troupe eval show` are about. Without a baseline nothing has changed. */
export interface ShownScores {
  evals: EvalsPackage;
  before: StoredScores | null;
  after: StoredScores;
  compared: readonly ComparedScore[];
}

/** `place`: a folder with `scores.json`, or such a file. Throws `config_invalid`. */
function readStoredScores(evals: EvalsPackage, place: string): StoredScores {
  const isFolder = statSync(place, { throwIfNoEntry: false })?.isDirectory() === true;
  const file = isFolder ? path.join(place, 'scores.json') : place;
  if (!existsSync(file)) {
    const text = `there are no scores in ${file}; writeScores(folder, scores) writes them, and keep: folder of scoreScenarios keeps the conversations`;
    throw new TroupeError('config_invalid', text, { file });
  }
  const card = evals.readScorecard(file);
  const folder = path.resolve(path.dirname(file));
  const scenarios = new Map(card.scenarios.map((scenario) => [scenario.scenario, scenario]));
  return { folder, card, scenarios, kept: evals.keptRuns(card, folder) };
}

/** Throws `config_invalid`. */
export function readShownScores(evals: EvalsPackage, after: string, before?: string): ShownScores {
  const shown = {
    evals,
    before: before === undefined ? null : readStoredScores(evals, before),
    after: readStoredScores(evals, after),
  };
  return { ...shown, compared: evals.compareScores((shown.before ?? shown.after).card, shown.after.card) };
}

/** Undefined: these scores have no such run. */
export function runOf(stored: StoredScores | null, scenario: string, seed: number): ScoredRun | undefined {
  return stored?.scenarios.get(scenario)?.runs.find((run) => run.seed === seed);
}

/** The data directory of a run. Null: its data were not kept, or are no longer there. */
export function dataOf(stored: StoredScores, conversation: string | undefined): string | null {
  const data = conversation === undefined ? undefined : stored.kept.get(conversation);
  return data !== undefined && existsSync(data) ? data : null;
}
