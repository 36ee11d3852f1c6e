/** The context module: log in, prompt out. Pure: no I/O, no clock, no randomness. */
export {
  type AgentProfile,
  baselineBody,
  baselineDrift,
  type BaselineText,
  baselineTexts,
  rosterNews,
  textsInMode,
  type ToolApproval,
} from './baseline.ts';
export { capped } from './extract/cut-text.ts';
export { beginTurnSteps, beginTurn, showWaiting, showWaitingSteps, type TurnInput } from './begin-turn.ts';
export {
  baselineTokens,
  buildPrompt,
  countedKinds,
  type ModelFacts,
  NOTHING_KNOWN,
  receiptOf,
} from './build-prompt.ts';
export { isPlausible, leastEstimate, type UsageAnchor } from './budget/calibrate.ts';
export { limitIn } from './budget/model-windows.ts';
export { windowOf } from './budget/model-windows.ts';
export { budgetOf, MAX_REQUEST_BYTES } from './budget/token-budget.ts';
export { eventText, visibleText } from './event-text.ts';
export { foldAhead, foldEvent, foldOrBegin } from './fold-event.ts';
export {
  type AboutAgent,
  type AboutTurn,
  type AgentFragments,
  type DynamicText,
  type FileFragment,
  Fragment,
  type FragmentInput,
  NO_FRAGMENTS,
  type StaticText,
} from './fragment.ts';
export { AnswerCleaner, cleanAnswer } from './clean-answer.ts';
export { fenceKey, hashText } from './hash.ts';
export { liveDelta, modeItems, phaseItem, RUNTIME_ITEMS, type StatedItems } from './live.ts';
export { stateItem, statedUnder } from './live.ts';
export {
  addPerson,
  agentLabel,
  createPeople,
  hasSeveralPeople,
  isUntrusted,
  type People,
  personLabel,
} from './people.ts';
export { minute } from './turn-input.ts';
export { deltaOf, isAdopted } from './session.ts';
export { placeOf, sessionMismatch, type SessionPlace, type SessionTerms, standsAt } from './session.ts';
export type { Slot } from './slot.ts';
export { createView, forkView, type View } from './view.ts';
export { chooseMemories, type Memories, NO_MEMORIES } from './retrieve/memories.ts';
export { memoryItem, shownSeqs } from './retrieve/memories.ts';
export {
  type CompactionBase,
  extractCompaction,
  extractionSteps,
  summaryCompaction,
  summarySteps,
} from './compaction/compose.ts';
export { choosePrune } from './compaction/prune.ts';
export type { ProposedCut } from './compaction/cut-point.ts';
export { adoptionOf, isEmptyPlan, isPruneOnly, latestCompaction, presentIn } from './compaction/plan.ts';
export { pairSafe } from './compaction/cut-point.ts';
export { earlySteps } from './compaction/trim.ts';
export { DEFAULT_POLICY, type CompactionPolicy, scaledPolicy } from './compaction/policy.ts';
export { type Room, roomOf } from './compaction/policy.ts';
export {
  adoptStrategy,
  isWorthwhile,
  proposeCut,
  pruneStrategy,
  type CompactionRun,
  replaceTurnSummary,
  type StrategyOutcome,
  startRun,
  takeCompaction,
  trimStrategy,
} from './compaction/strategies.ts';
export { atOnce, type Steps } from './steps.ts';
export type { SummaryRequest } from './summary/fit-request.ts';
export { handoffRequestSteps } from './summary/handoff-request.ts';
export { parseHandoff } from './summary/handoff-request.ts';
export { fitSummaryRequest, summaryRequestSteps } from './summary/summary-request.ts';
export { turnPrefixSteps } from './summary/summary-request.ts';
export { verifySummary } from './summary/verify-summary.ts';
