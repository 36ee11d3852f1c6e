/** `@troupe/evals/command`: the parts of this package that the command `troupe eval` uses. */
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

/** The log of a run with its tasks' threads, and its lines in readable form. */
export async function readKeptRun(
  source: Source,
  conversation: string,
): Promise<{ events: readonly Event[]; lines: RunLine[] }> {
  const run = await readRun(source, conversation, { prompts: false });
  return { events: run.events, lines: linesOf(run) };
}

/** A test of a conversation. It was played once. */
interface TestMade {
  /** Plain data. */
  recording: unknown;
  /** Source text of the test. The paths are relative to its folder. */
  testFor(places: { agents: string; recording: string }): string;
  /** Its size: moves of people, turns, model answers, tool results. */
  size: { moves: number; turns: number; answers: number; calls: number };
}

/** Makes a test of a conversation and plays it once. Throws `command_refused`, `config_invalid`. */
export async function recordConversation(
  source: Source,
  conversation: string,
  { agentsFile, hasServers }: { agentsFile: string; hasServers: boolean },
): Promise<TestMade> {
  // Only prompts tell what MCP servers offered.
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
