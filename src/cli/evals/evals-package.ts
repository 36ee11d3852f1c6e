import { loadWith, type Need } from '../../base/optional-packages.ts';
import type { Event, EventOf } from '../../events/index.ts';
import type { Troupe } from '../../library/troupe.ts';

/** What `troupe eval` uses of `@troupe/evals`. The package is separate and optional. */
export interface EvalsPackage {
  /** Reads `scores.json`. Throws `config_invalid`. */
  readScorecard(file: string): Scorecard;
  /** Compares scores with a baseline. */
  compareScores(before: Scorecard, after: Scorecard): ComparedScore[];
  /** Names of the scores that are worse. */
  worseOnes(compared: readonly ComparedScore[]): string[];
  /** A table for the terminal. `folders`: of the scores and of the baseline. */
  scoresTable(scores: Scorecard, before?: Scorecard, folders?: readonly [string, string?]): string;
  /** A mean with its interval. */
  summaryWords(summary: ScoreSummary | null): string;
  /** Data directories of the runs that `folder` keeps, by conversation. */
  keptRuns(scores: Scorecard, folder: string): Map<string, string>;
  /** The log of a run with the threads of its tasks, and its lines as people read them. */
  readKeptRun(source: RunSource, conversation: string): Promise<KeptRun>;
  /**
   * Makes a test of a conversation, and plays it once. `agentsFile`: its company; `hasServers`: of which MCP servers are a part.
   * Throws `command_refused`, `config_invalid`.
   */
  recordConversation(source: RunSource, conversation: string, company: RecordedCompany): Promise<TestMade>;
}

const NEED: Need = { by: 'troupe eval', packages: { '@troupe/evals': 0 } };

/** Throws `package_missing`. */
export function loadEvals(): Promise<EvalsPackage> {
  // `as string`: the command compiles without the package.
  return loadWith(NEED, async () => (await import('@troupe/evals/command' as string)) as EvalsPackage);
}

/** Where a conversation is read from. */
export type RunSource = Pick<Troupe, 'events' | 'trace' | 'promptOf'>;

/** Who plays a recorded conversation. */
interface RecordedCompany {
  agentsFile: string;
  hasServers: boolean;
}

/** A test of a conversation. */
export interface TestMade {
  /** Plain data. */
  recording: unknown;
  /** The text of the test, for these paths relative to its folder. */
  testFor(places: { agents: string; recording: string }): string;
  /** How much of it there is: moves of people, turns, answers of models, results of tools. */
  size: { moves: number; turns: number; answers: number; calls: number };
}

interface KeptRun {
  events: readonly Event[];
  lines: RunLine[];
}

/** A line of a conversation: words of somebody, a tool call with what came of it, or a turn that ended without an answer. */
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

/** Scores of scenarios over repeated runs. */
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

/** What became of a score in one run. `none`: it has no value there. */
export type RunScore =
  | { score: string; kind: 'scored'; value: number | boolean; why: string }
  | { score: string; kind: 'none'; why: string }
  | { score: string; kind: 'failed'; why: string };

/** A score over all runs of a scenario. */
interface ScoreSummary {
  score: string;
}

export interface ComparedScore {
  scenario: string;
  score: string;
  change: Change;
  /** Null: there was none. */
  before: ScoreSummary | null;
  /** Null: there is none any more. */
  after: ScoreSummary | null;
}

export type Change = 'better' | 'same' | 'worse' | 'new' | 'gone';
