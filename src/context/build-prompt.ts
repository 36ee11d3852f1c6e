import type {
  BaselineBody,
  ConversationId,
  PromptLayer,
  PromptMessage,
  PromptReceipt,
  PromptRecord,
  PromptTokens,
  ToolSpec,
} from '../events/index.ts';
import type { AgentProfile, BaselineText } from './baseline.ts';
import { breakpointsOf, sentBefore } from './breakpoints.ts';
import { type Calibration, emptyCalibration, estimate } from './budget/calibrate.ts';
import { kindOf, type KindTokens } from './budget/content-kinds.ts';
import { budgetOf, usageLevel } from './budget/token-budget.ts';
import { closeGroup } from './call-group.ts';
import { hashText } from './hash.ts';
import { promptChain } from './prompt-chain.ts';
import { chainMessage, type Note, type View } from './view.ts';

/** What is known of the model beside its definition. */
export interface ModelFacts {
  calibration: Calibration;
  /** The window as a provider's refusal told it. */
  window: number | null;
}

export const NOTHING_KNOWN: ModelFacts = { calibration: emptyCalibration(), window: null };

export interface PromptInput {
  view: View;
  conversation: ConversationId;
  agent: AgentProfile;
  baseline: {
    body: BaselineBody;
    texts: readonly BaselineText[];
    tools: readonly ToolSpec[];
    source: string;
  };
  step: number;
  model?: ModelFacts;
}

/**
 * The prompt: baseline as one system message, then the view. Costs the same however long the history is, but for one
 * copy of an array of references. The view is closed (synthetic results) but otherwise left alone. A note stands behind
 * all that lasts, and nothing is cached from there on.
 */
export function buildPrompt(input: PromptInput): PromptRecord {
  const { view, conversation, agent, baseline, step } = input;
  closeGroup(view);
  const system = systemMessage(baseline.texts);
  const messages: PromptMessage[] = [system];
  for (const { message } of view.slots) messages.push(message);
  const isSummarised = view.slots[0]?.layer === 'summary';
  const breakpoints = breakpointsOf({
    count: messages.length,
    turnBegins: view.turn?.begins ?? null,
    summaryEnds: isSummarised ? 1 : null,
    frontier: view.frontier === null ? null : view.frontier + 1,
    sent: sentBefore(messages),
  });
  const { note } = view;
  if (note) messages.push(note.message);
  return {
    turn: view.turn?.id ?? null,
    step,
    conversation,
    agent: agent.id,
    provider: agent.provider,
    model: agent.model,
    mode: 'full',
    upTo: view.upTo,
    layers: layersOf(view, baseline),
    messages,
    tools: [...baseline.tools],
    count: messages.length,
    chain: promptChain(system, note ? chainMessage(view.chain, note.message) : view.chain),
    tokens: tokensOf(input),
    breakpoints,
    cuts: [...view.cuts],
    cursor: { before: null, after: null },
  };
}

export function receiptOf(record: PromptRecord): PromptReceipt {
  const { messages: _messages, tools: _tools, ...receipt } = record;
  return receipt;
}

function systemMessage(texts: readonly BaselineText[]): PromptMessage {
  const spoken = texts.filter(({ name, text }) => name !== 'tools' && text !== '');
  return { role: 'system', content: spoken.map(({ text }) => text).join('\n\n'), seqs: [] };
}

/** Tokens of the baseline: in every prompt, never cut. */
export function baselineTokens({ layers }: BaselineBody): number {
  return layers.reduce((sum, { tokens }) => sum + tokens, 0);
}

/** What was counted, by kind of content. */
export function countedKinds(view: View, baseline: BaselineBody): KindTokens {
  const { kinds, note } = view;
  const counted = { ...kinds, system: kinds.system + baselineTokens(baseline) };
  if (note) counted[kindOf(note.message)] += note.tokens;
  return counted;
}

function tokensOf({ view, agent, baseline, model = NOTHING_KNOWN }: PromptInput): PromptTokens {
  const { maxOutputTokens, contextWindow } = agent;
  const window = model.window === null ? contextWindow : Math.min(contextWindow, model.window);
  const { reserved, available } = budgetOf({ window, maxOutputTokens });
  const kinds = countedKinds(view, baseline.body);
  const { tokens, calibrated } = estimate(model.calibration, { kinds, anchor: view.anchor });
  return {
    total: view.tokens + (view.note?.tokens ?? 0) + baselineTokens(baseline.body),
    window,
    reserved,
    free: available - tokens,
    estimate: tokens,
    calibrated,
    ...usageLevel(tokens, available),
  };
}

function noteLayer({ message, tokens }: Note, source: string): PromptLayer {
  return { name: 'note', stability: 'step', tokens, hash: hashText(message.content), source };
}

function layersOf(view: View, baseline: PromptInput['baseline']): PromptLayer[] {
  const layers: PromptLayer[] = baseline.body.layers.map(({ name, hash, tokens }) => ({
    name,
    stability: 'epoch',
    tokens,
    hash,
    source: baseline.source,
  }));
  const [first] = view.slots;
  const summary = first?.layer === 'summary' ? first.tokens : 0;
  if (first && summary > 0) {
    const hash = hashText(first.message.content);
    const source = first.event ?? '';
    layers.push({ name: 'summary', stability: 'summary', tokens: summary, hash, source });
  }
  const source = `${view.floor + 1}..${view.upTo}`;
  const { turn } = view;
  const { missed, trigger, live } = turn?.input.tokens ?? { missed: 0, trigger: 0, live: 0 };
  const tokens = view.tokens - summary - missed - trigger - live;
  const hash = turn ? turn.input.chainBefore : view.chain;
  layers.push({ name: 'history', stability: 'append', tokens, hash, source });
  if (!turn) return layers;
  for (const name of ['missed', 'trigger', 'live'] as const) {
    const { tokens: sizes, hashes } = turn.input;
    layers.push({ name, stability: 'turn', tokens: sizes[name], hash: hashes[name], source: turn.id });
  }
  if (view.note) layers.push(noteLayer(view.note, turn.id));
  return layers;
}
