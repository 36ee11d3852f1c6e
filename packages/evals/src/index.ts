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
export { recordedModels } from './play-conversation.ts';
export { recordedTools } from './play-conversation.ts';
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
export type { NewUser, Seen, User, UserMove, UserStart } from './users.ts';
export { minutesPass, person, type Person } from './users.ts';
export { scriptedUser, type Step, when } from './users.ts';
export { simulatedUser } from './simulated-user.ts';
export type { SimulatedUserSettings } from './simulated-user.ts';
export type { ModelChoice } from './company.ts';
export type { MoveName } from './move-reply.ts';
export { type Moment, type Often } from './moments.ts';
export { type Cause, failed, stopped, told, woken } from './moments.ts';
export { answered, handedOver, said } from './moments.ts';
export { asked, askedApproval, called, type CallOutcome, decided, delegated } from './moments.ts';
export { type Bounds, takenBy, type Within } from './matchers.ts';
export type { AskedWith, RunMatchers } from './matchers.ts';
export type { Args, Asymmetric, Named, What, Who } from './moments.ts';
export {
  cost,
  hasFacts,
  keptPolicy,
  type Policy,
  reachedGoal,
  tokens,
  turns,
  userReachedGoal,
} from './score.ts';
export { judge, type JudgeSettings } from './score.ts';
export {
  type ExplainedValue,
  type Judged,
  lessIsBetter,
  type Score,
  type ScoreContext,
  type ScoreValue,
} from './score.ts';
export { type ScenarioToScore, scoreScenarios, type ScoreSettings } from './score.ts';
export { readScorecard, type RunScore, type Scorecard, type ScoreSummary } from './scorecard.ts';
export { type Change, type ComparedScore, compareScores, worseOnes } from './scorecard.ts';
export { scoresTable } from './scorecard.ts';
export { scoresJunit } from './scorecard.ts';
export { scoresJson, writeScores } from './scorecard.ts';
