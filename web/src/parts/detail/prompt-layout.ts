import type {
  LayerName,
  PromptLayer,
  PromptMessage,
  PromptTokens,
  Usage,
} from '../../../../src/events/index.ts';

/** The data needed to lay out a prompt. Plain data, so that tests need no page. */
export interface LaidPrompt {
  mode: 'full' | 'delta';
  upTo: number;
  layers: readonly PromptLayer[];
  messages: readonly PromptMessage[];
  tokens: PromptTokens;
  usage?: Usage | undefined;
}

export interface Slice {
  name: LayerName;
  tokens: number;
}

/** Input tokens: the vendor's report for a whole prompt, else the estimate. */
export function sizeOf({ mode, usage, tokens }: LaidPrompt): { tokens: number; isReported: boolean } {
  return mode === 'full' && usage && usage.input > 0
    ? { tokens: usage.input, isReported: true }
    : { tokens: tokens.estimate, isReported: false };
}

/** The layers in the order they are sent, scaled to the total size. */
export function slicesOf(prompt: LaidPrompt): Slice[] {
  const scale = scaleOf(prompt);
  return prompt.layers.flatMap(({ name, tokens }) => (tokens > 0 ? [{ name, tokens: tokens * scale }] : []));
}

/** Factor from Troupe's token counts to the vendor's. */
export function scaleOf(prompt: LaidPrompt): number {
  const { total } = prompt.tokens;
  return total === 0 ? 1 : sizeOf(prompt).tokens / total;
}

/** Tokens of each message outside the frozen layers, estimated from characters: the record has token sums only for layers. */
export function messageTokens(prompt: LaidPrompt): number[] {
  const { messages, layers } = prompt;
  const moving = layers.reduce((sum, { stability, tokens }) => sum + (stability === 'epoch' ? 0 : tokens), 0);
  const weights = messages.map((message) => (message.role === 'system' ? 0 : charsOf(message) + FRAME_CHARS));
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  const perChar = all === 0 ? 0 : (moving * scaleOf(prompt)) / all;
  return weights.map((weight) => weight * perChar);
}

/** Characters that every message costs besides its text. */
const FRAME_CHARS = 16;

function charsOf(message: PromptMessage): number {
  const calls = message.role === 'assistant' ? (message.calls ?? []) : [];
  return message.content.length + calls.reduce((sum, { name, args }) => sum + name.length + args.length, 0);
}

/** Number of tokens before a position: the beginning of a layer, or a message. */
export function placeOf(
  prompt: LaidPrompt,
  { layer, message }: { layer: string; message: number | null },
): number {
  const slices = slicesOf(prompt);
  if (message === null || message === 0) {
    const at = slices.findIndex(({ name }) => name === layer);
    return slices.slice(0, Math.max(0, at)).reduce((sum, { tokens }) => sum + tokens, 0);
  }
  const frozen = prompt.layers.filter(({ stability }) => stability === 'epoch').map(({ name }) => name);
  const before = slices
    .filter(({ name }) => frozen.includes(name))
    .reduce((sum, { tokens }) => sum + tokens, 0);
  return (
    before +
    messageTokens(prompt)
      .slice(0, message)
      .reduce((sum, tokens) => sum + tokens, 0)
  );
}

export interface Placed {
  index: number;
  message: PromptMessage;
}

const BLOCK = /^\[new #|^\[[^\n]*(?:handed this conversation over to you|began the phase )/;

/** Groups messages by layer. The frozen texts form one message; `own` holds the steps of this turn. */
export function messagesByLayer(
  { messages, layers, upTo }: LaidPrompt,
  inputs: readonly number[],
): Map<LayerName | 'own', Placed[]> {
  const found = new Map<LayerName | 'own', Placed[]>();
  const add = (layer: LayerName | 'own', index: number, message: PromptMessage) => {
    const list = found.get(layer) ?? [];
    list.push({ index, message });
    found.set(layer, list);
  };
  const has = (name: LayerName) => layers.some((layer) => layer.name === name && layer.tokens > 0);
  const begins = firstInput(messages, upTo, inputs);
  for (const [index, message] of messages.entries()) {
    if (message.role === 'system') add('rules', index, message);
    else if (has('note') && index === messages.length - 1) add('note', index, message);
    else if (index === 1 && has('summary')) add('summary', index, message);
    else if (index < begins) add('history', index, message);
    else if (message.role === 'user') add(BLOCK.test(message.content) ? 'missed' : 'trigger', index, message);
    else add('own', index, message);
  }
  return found;
}

/** Index of the first message of this turn: its trigger, or the missed messages directly before it. */
function firstInput(messages: readonly PromptMessage[], upTo: number, inputs: readonly number[]): number {
  const woken = messages.findIndex(
    ({ role, seqs }) => role === 'user' && seqs.some((seq) => inputs.includes(seq)),
  );
  const own = messages.findIndex(({ seqs }) => (seqs[0] ?? 0) > upTo);
  let first = [woken, own, messages.length].filter((index) => index !== -1).reduce((a, b) => Math.min(a, b));
  while (messages[first - 1]?.role === 'user' && BLOCK.test(messages[first - 1]?.content ?? '')) first -= 1;
  return first;
}
