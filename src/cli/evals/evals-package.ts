import { loadWith, type Need } from '../../base/optional-packages.ts';
import type { Event, EventOf } from '../../events/index.ts';
import type { Troupe } from '../../library/troupe.ts';

/** The interface of `@troupe/evals` that `troupe eval` uses. The package is separate and optional. */
export interface EvalsPackage {
  /** Reads `scores.json`. Throws `config_invalid`. */
  readScorecard(file: string): Scorecard;
  compareScores(before: Scorecard, after: Scorecard): ComparedScore[];
  /** Names of the scores that became worse. */
  worseOnes(compared: readonly ComparedScore[]): string[];
  /** A table for the terminal. `folders`: those of the scores and of the baseline. */
  scoresTable(scores: Scorecard, before?: Scorecard, folders?: readonly [string, string?]): string;
  /** A mean with its confidence interval. */
  summaryWords(summary: ScoreSummary | null): string;
  /** Data directories of the runs that `folder` keeps, by conversation. */
  keptRuns(scores: Scorecard, folder: string): Map<string, string>;
  /** The log of a run with its tasks' threads, and its lines in readable form. */
  readKeptRun(source: RunSource, conversation: string): Promise<KeptRun>;
  /**
   * Makes a test of a conversation and plays it once. `agentsFile`: file of its company; `hasServers`: whether the company
   * uses MCP servers. Throws `command_refused`, `config_invalid`.
   */
  recordConversation(source: RunSource, conversation: string, company: RecordedCompany): Promise<TestMade>;
}

const NEED: Need = { by: 'troupe eval', packages: { '@troupe/evals': 0 } };

/** Throws `package_missing`. */
export function loadEvals(): Promise<EvalsPackage> {
  // `as string`: the command compiles without the package.
  return loadWith(NEED, async () => (await import('@troupe/evals/command' as string)) as EvalsPackage);
}

/** Source from which a conversation is read. */
export type RunSource = Pick<Troupe, 'events' | 'trace' | 'promptOf'>;

/** The company that plays a recorded conversation. */
interface RecordedCompany {
  agentsFile: string;
  hasServers: boolean;
}

export interface TestMade {
  /** Plain data. */
  recording: unknown;
  /** Source text of the test. The paths are relative to its folder. */
  testFor(places: { agents: string; recording: string }): string;
  /** Its size: moves of people, turns, model answers, tool results. */
  size: { moves: number; turns: number; answers: number; calls: number };
}

interface KeptRun {
  events: readonly Event[];
  lines: RunLine[];
}

/** A line of a conversation: somebody's text, a tool call with its result, or a turn that ended without an answer. */
export type RunLine =
  | { readonly kind: 'said'; readonly event: Event; readonly who: string; readonly text: string }
  | {
      readonly kind: 'called';
      readonly event: Event;
      readonly who: string;
      readonly tool: string;
      readonly args: string;
      /** Null: it has none yet. */
      readonly result: EventOf<'tool.result'> | null;
    }
  | { readonly kind: 'ended'; readonly event: Event; readonly who: string; readonly text: string };

export interface Scorecard {
  scenarios: ScoredScenario[];
}

export interface ScoredScenario {
  scenario: string;
  scores: ScoreSummary[];
  runs: ScoredRun[];
}

export interface ScoredRun {
  /** Number of the run, from 1. */
  seed: number;
  /** Its conversation, if its data were kept. */
  conversation?: string | undefined;
  scores: RunScore[];
}

/** Outcome of a score in one run. `none`: it has no value there. */
export type RunScore =
  | { score: string; kind: 'scored'; value: number | boolean; why: string }
  | { score: string; kind: 'none'; why: string }
  | { score: string; kind: 'failed'; why: string };

/** A score over all runs of a scenario. */
interface ScoreSummary {
  score: string;
  /** Null: no run has a value. */
  mean: number | null;
}

export interface ComparedScore {
  scenario: string;
  score: string;
  change: Change;
  /** Null: the baseline does not have this score. */
  before: ScoreSummary | null;
  /** Null: the score no longer exists. */
  after: ScoreSummary | null;
}

export type Change = 'better' | 'same' | 'worse' | 'new' | 'gone';
