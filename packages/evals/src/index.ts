/** Tests of conversations, on vitest: scenarios, users, and matchers over the log. */
import { extendExpect } from './extend-expect.ts';

extendExpect();

export {
  type ClaimResult,
  type ConversationEvals,
  describeConversation,
  type EvalSettings,
} from './describe-conversation.ts';
export type { AddScenario, Claim, Scenario, ScenarioOptions } from './scenario.ts';
export { playConversation, type PlayOptions, type Users } from './play-conversation.ts';
export type { Company, Replacements, TestModel, ToolStub, TroupeSettings } from './company.ts';
export { recordedModels } from './recorded-models.ts';
export { recordedTools } from './recorded-tools.ts';
export { readRecording, type Recording } from './recording.ts';
export { readRun, type ReadRunOptions } from './read-run.ts';
export {
  callsOf,
  type ConversationRun,
  type RunCall,
  type RunEnd,
  type RunPlace,
  type RunPrompt,
  type RunTurn,
  type RunUser,
  type UserOutcome,
} from './conversation-run.ts';
export type { NewUser, Seen, User, UserMove, UserStart } from './user.ts';
export { minutesPass, person, type Person } from './person.ts';
export { scriptedUser, type Step, when } from './scripted-user.ts';
export { simulatedUser } from './simulated-user.ts';
export type { SimulatedUserSettings } from './simulated-user-settings.ts';
export type { ModelChoice } from './model-agent.ts';
export type { MoveName } from './move-reply.ts';
export { type Moment, type Often } from './moment.ts';
export { type Cause, failed, stopped, told, woken } from './moments-of-turns.ts';
export { answered, handedOver, said } from './moments-of-words.ts';
export { asked, askedApproval, called, type CallOutcome, decided, delegated } from './moments-of-work.ts';
export { type Bounds, takenBy, type Within } from './whole-run.ts';
export type { AskedWith, RunMatchers } from './run-matchers.ts';
export type { Args, Asymmetric, Named, What, Who } from './pattern.ts';
export {
  cost,
  hasFacts,
  keptPolicy,
  type Policy,
  reachedGoal,
  tokens,
  turns,
  userReachedGoal,
} from './common-scores.ts';
export { judge, type JudgeSettings } from './judge.ts';
export {
  type ExplainedValue,
  type Judged,
  lessIsBetter,
  type Score,
  type ScoreContext,
  type ScoreValue,
} from './score.ts';
export { type ScenarioToScore, scoreScenarios, type ScoreSettings } from './score-scenarios.ts';
export { readScorecard, type RunScore, type Scorecard, type ScoreSummary } from './scorecard.ts';
export { type Change, type ComparedScore, compareScores, worseOnes } from './compare-scores.ts';
export { scoresTable } from './scores-table.ts';
export { scoresJunit } from './scores-junit.ts';
export { scoresJson, writeScores } from './write-scores.ts';
