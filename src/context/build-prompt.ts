import type {
  BaselineBody,
  ConversationId,
  PromptLayer,
  PromptMessage,
  PromptReceipt,
  PromptRecord,
  ToolSpec,
} from '../events/index.ts';
import type { AgentProfile, BaselineText } from './baseline.ts';
import { breakpointsOf } from './breakpoints.ts';
import { hashText } from './hash.ts';
import { closeGroup } from './call-group.ts';
import { chainMessage, type View } from './view.ts';

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
}

/**
 * The prompt: baseline as one system message, then the view. Costs the same however long the history is, but for one
 * copy of an array of references. The view is closed (synthetic results) but otherwise left alone.
 */
export function buildPrompt({ view, conversation, agent, baseline, step }: PromptInput): PromptRecord {
  closeGroup(view);
  const system = systemMessage(baseline.texts);
  const messages: PromptMessage[] = [system, ...view.messages];
  const layers = layersOf(view, baseline);
  const total = layers.reduce((sum, layer) => sum + layer.tokens, 0);
  const reserved = agent.maxOutputTokens;
  return {
    turn: view.turn?.id ?? null,
    step,
    conversation,
    agent: agent.id,
    provider: agent.provider,
    model: agent.model,
    mode: 'full',
    upTo: view.upTo,
    layers,
    messages,
    tools: [...baseline.tools],
    count: messages.length,
    chain: hashText(`${chainMessage('', system)}\n${view.chain}`),
    tokens: {
      total,
      window: agent.contextWindow,
      reserved,
      free: agent.contextWindow - reserved - total,
    },
    breakpoints: breakpointsOf(messages.length, view.turn ? view.turn.begins : null),
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

function layersOf(view: View, baseline: PromptInput['baseline']): PromptLayer[] {
  const frozen: PromptLayer[] = baseline.body.layers.map(({ name, hash, tokens }) => ({
    name,
    stability: 'epoch',
    tokens,
    hash,
    source: baseline.source,
  }));
  const turn = view.turn;
  if (!turn) {
    return [...frozen, historyLayer(view.chain, view.tokens, view.upTo)];
  }
  const { missed, trigger, live } = turn.tokens;
  const inputLayer = (name: 'missed' | 'trigger' | 'live', tokens: number): PromptLayer => ({
    name,
    stability: 'turn',
    tokens,
    hash: turn.hashes[name],
    source: turn.id,
  });
  return [
    ...frozen,
    historyLayer(turn.chainBefore, view.tokens - missed - trigger - live, view.upTo),
    inputLayer('missed', missed),
    inputLayer('trigger', trigger),
    inputLayer('live', live),
  ];
}

function historyLayer(hash: string, tokens: number, upTo: number): PromptLayer {
  return { name: 'history', stability: 'append', tokens, hash, source: `1..${upTo}` };
}
