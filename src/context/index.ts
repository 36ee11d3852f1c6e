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
  type AboutAgent,
  type AboutTurn,
  type AgentFragments,
  type DynamicText,
  type FileFragment,
  Fragment,
  NO_FRAGMENTS,
} from './baseline.ts';
export { capped } from './text/cut-text.ts';
export {
  beginTurnSteps,
  beginTurn,
  showWaiting,
  showWaitingSteps,
  type TurnInput,
} from './render/begin-turn.ts';
export {
  baselineTokens,
  buildPrompt,
  countedKinds,
  type ModelFacts,
  NOTHING_KNOWN,
  receiptOf,
} from './build-prompt.ts';
export { isPlausible, leastEstimate, type UsageAnchor } from './budget/tokens.ts';
export { limitIn, windowOf, budgetOf, MAX_REQUEST_BYTES } from './budget/windows.ts';
export { eventText, visibleText } from './text/event-text.ts';
export { foldAhead, foldCovered, foldEvent, foldOrBegin } from './fold-event.ts';
export { AnswerCleaner, cleanAnswer } from './clean-answer.ts';
export { fenceKey, hashText } from './text/hash.ts';
export {
  liveDelta,
  modeItems,
  phaseItem,
  RUNTIME_ITEMS,
  type StatedItems,
  stateItem,
  statedUnder,
} from './view/live.ts';
export {
  addPerson,
  agentLabel,
  createPeople,
  hasSeveralPeople,
  isUntrusted,
  type People,
  personLabel,
} from './text/people.ts';
export { minute } from './render/lines.ts';
export {
  deltaOf,
  isAdopted,
  placeOf,
  sessionMismatch,
  type SessionPlace,
  type SessionTerms,
  standsAt,
} from './view/session.ts';
export { type Slot, createView, forkView, type View } from './view/view.ts';
export { chooseMemories, memoryItem, type Memories, NO_MEMORIES, shownSeqs } from './retrieve/memories.ts';
export { isAsking } from './retrieve/search.ts';
export {
  type CompactionBase,
  extractCompaction,
  extractionSteps,
  summaryCompaction,
  summarySteps,
} from './compaction/compose.ts';
export { choosePrune } from './compaction/prune.ts';
export {
  type ProposedCut,
  adoptionOf,
  isEmptyPlan,
  isPruneOnly,
  latestCompaction,
  presentIn,
  pairSafe,
} from './compaction/plan.ts';
export {
  earlySteps,
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
export { DEFAULT_POLICY, type CompactionPolicy, scaledPolicy } from './compaction/policy.ts';
export { type Room, roomOf } from './compaction/policy.ts';
export { atOnce, type Steps } from './text/steps.ts';
export type { SummaryRequest } from './summary/transcript.ts';
export {
  handoffRequestSteps,
  parseHandoff,
  fitSummaryRequest,
  summaryRequestSteps,
  turnPrefixSteps,
} from './summary/requests.ts';
export { verifySummary } from './summary/verify-summary.ts';
