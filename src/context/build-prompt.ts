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
import { type Calibration, emptyCalibration, estimate, kindOf, type KindTokens } from './budget/tokens.ts';
import { budgetOf, usageLevel } from './budget/windows.ts';
import { closeGroup } from './render/messages.ts';
import { hashText } from './text/hash.ts';
import { chainMessage, type Note, type View } from './view/view.ts';

/** Facts about the model that were learnt from its provider. */
export interface ModelFacts {
  calibration: Calibration;
  /** The window that a provider named when it refused a request. */
  window: number | null;
  /** Ids of images that its server refused, the latest last. */
  refused: readonly string[];
}

export const NOTHING_KNOWN: ModelFacts = { calibration: emptyCalibration(), window: null, refused: [] };

interface PromptInput {
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
 * The prompt: the baseline as one system message, then the view. The time does not depend on the length of the history,
 * except for one copy of an array of references. Closes the open call group with synthetic results, and changes nothing else
 * in the view. A note comes last, and nothing is cached from there on.
 */
export function buildPrompt(input: PromptInput): PromptRecord {
  const { view, conversation, agent, baseline, step } = input;
  if (view.group) closeGroup(view);
  const { message: system, chain } = systemOf(baseline.texts);
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
    chain: hashText(`${chain}\n${note ? chainMessage(view.chain, note.message) : view.chain}`),
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

interface SystemMessage {
  message: PromptMessage;
  chain: string;
}

/** System messages by baseline, because they are long and turns share a baseline until it changes. */
const SYSTEMS = new WeakMap<readonly BaselineText[], SystemMessage>();

function systemOf(texts: readonly BaselineText[]): SystemMessage {
  const known = SYSTEMS.get(texts);
  if (known) return known;
  const message = systemMessage(texts);
  const made = { message, chain: chainMessage('', message) };
  SYSTEMS.set(texts, made);
  return made;
}

function systemMessage(texts: readonly BaselineText[]): PromptMessage {
  const spoken: string[] = [];
  for (const { name, text } of texts) if (name !== 'tools' && text !== '') spoken.push(text);
  return { role: 'system', content: spoken.join('\n\n'), seqs: [] };
}

/** Tokens of the baseline, which every prompt contains and no compaction shortens. */
export function baselineTokens({ layers }: BaselineBody): number {
  let sum = 0;
  for (const { tokens } of layers) sum += tokens;
  return sum;
}

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
  const layers: PromptLayer[] = [];
  for (const { name, hash, tokens } of baseline.body.layers)
    layers.push({ name, stability: 'epoch', tokens, hash, source: baseline.source });
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

/** Anthropic's limit, the lowest of the vendors with explicit caching. */
const MAX_BREAKPOINTS = 4;

interface BreakpointInput {
  /** Number of messages in the prompt, including the system message. All indexes refer to this list. */
  count: number;
  /** Index of the last message before the input of this turn. Null if no turn runs. */
  turnBegins: number | null;
  /** Index of the message that holds the summary; null without one. */
  summaryEnds: number | null;
  /** Index of the last message that the latest prune changed; null without one. */
  frontier: number | null;
  /**
   * Index of the last message of the previous request; see `sentBefore`. Default: `turnBegins`. In the first request after a
   * prune, pass the previous frontier, because nothing after it is cached.
   */
  sent?: number | null;
}

/**
 * Indexes of the messages after which a provider with explicit caching sets a breakpoint: ascending, at most four.
 *
 * The provider looks back only 20 blocks from a breakpoint, and a step with many parallel calls adds more than that. So after
 * both ends of the prompt, the most valuable breakpoint is the last message of the previous request, where its cache entry is
 * found whatever was added since. Next comes the frontier, which the next prune does not change. The summary is dropped
 * first, because the frontier comes after it.
 */
export function breakpointsOf({ count, turnBegins, summaryEnds, frontier, sent }: BreakpointInput): number[] {
  if (count === 0) return [];
  const places = new Set<number>();
  for (const index of [0, count - 1, sent ?? turnBegins, frontier, summaryEnds])
    if (index !== null && index >= 0 && index < count && places.size < MAX_BREAKPOINTS) places.add(index);
  return Array.from(Int32Array.from(places).sort());
}

/** Index of the last message of the previous request, which the agent's latest words answer. */
export function sentBefore(messages: readonly PromptMessage[]): number | null {
  let answer = messages.length - 1;
  while (answer > 0 && messages[answer]?.role !== 'assistant') answer -= 1;
  return answer > 0 ? answer - 1 : null;
}

/** The chained hash of a prompt: its system message, then the chain over the messages of the view. */
export function promptChain(system: PromptMessage, viewChain: string): string {
  return hashText(`${chainMessage('', system)}\n${viewChain}`);
}

/** `promptChain`, computed from the messages of a prompt. */
export function chainOf([system, ...view]: readonly PromptMessage[]): string {
  if (!system) return '';
  return promptChain(
    system,
    view.reduce((chain, message) => chainMessage(chain, message), ''),
  );
}
