/** The context module: log in, prompt out. Pure: no I/O, no clock, no randomness. */
export {
  type AgentProfile,
  baselineBody,
  baselineDrift,
  type BaselineText,
  baselineTexts,
  rosterNews,
} from './baseline.ts';
export { beginTurn, showWaiting, type TurnInput } from './begin-turn.ts';
export { buildPrompt, receiptOf } from './build-prompt.ts';
export { eventText, visibleText } from './event-text.ts';
export { foldAhead, foldEvent } from './fold-event.ts';
export { fenceKey, hashText } from './hash.ts';
export { liveDelta, toldUnder } from './live.ts';
export { minute } from './turn-input.ts';
export { createView, forkView, type View } from './view.ts';
