/** `@troupe/evals/command`: what the command `troupe eval` asks this package for. */
import { folderOfRun, keptConversations, type Scorecard } from './scorecard.ts';
import { readRun } from './read-run.ts';
import { recordTest, writeTest } from './record-test.ts';
import { linesOf, type RunLine } from './show-run.ts';
import type { Event, Troupe } from './troupe.ts';

export { compareScores, worseOnes } from './scorecard.ts';
export { readScorecard } from './scorecard.ts';
export { scoresTable, summaryWords } from './scorecard.ts';

type Source = Pick<Troupe, 'events' | 'trace' | 'promptOf'>;

/** Data directories of the runs that `folder` keeps, by conversation. */
export function keptRuns(scores: Scorecard, folder: string): Map<string, string> {
  return new Map(
    [...keptConversations(scores)].map((conversation) => [conversation, folderOfRun(folder, conversation)]),
  );
}

/** The log of a run with the threads of its tasks, and its lines as people read them. */
export async function readKeptRun(
  source: Source,
  conversation: string,
): Promise<{ events: readonly Event[]; lines: RunLine[] }> {
  const run = await readRun(source, conversation, { prompts: false });
  return { events: run.events, lines: linesOf(run) };
}

/** A test of a conversation, which has been played once. */
interface TestMade {
  /** Plain data. */
  recording: unknown;
  /** The text of the test, for these paths relative to its folder. */
  testFor(places: { agents: string; recording: string }): string;
  /** How much of it there is: moves of people, turns, answers of models, results of tools. */
  size: { moves: number; turns: number; answers: number; calls: number };
}

/** Makes a test of a conversation, and plays it once. Throws `command_refused`, `config_invalid`. */
export async function recordConversation(
  source: Source,
  conversation: string,
  { agentsFile, hasServers }: { agentsFile: string; hasServers: boolean },
): Promise<TestMade> {
  // What MCP servers offered is in prompts alone.
  const stored = await readRun(source, conversation, { prompts: hasServers && 'tools' });
  const made = await recordTest(stored, agentsFile);
  const { recording, moves, run } = made;
  const { answers, calls } = recording;
  return {
    recording,
    testFor: (places) => writeTest(made, places),
    size: { moves: moves.length, turns: run.turns.length, answers: answers.length, calls: calls.length },
  };
}
