import type { ImageRef, PromptMessage, PromptRecord, ToolSpec } from '../../events/index.ts';
import { IMAGE_TOKENS } from '../tokens.ts';
import { hashSteps, hashText } from '../hash.ts';
import { atOnce, type Steps } from '../steps.ts';
import type { CacheBlock, CacheRequest } from './simulate-cache.ts';

type Count = (text: string) => number;

/** The parts of a prompt that affect its caching. */
type CachedPrompt = Pick<
  PromptRecord,
  'conversation' | 'agent' | 'provider' | 'model' | 'tools' | 'messages' | 'breakpoints'
>;

interface CacheFacts {
  at: number;
  /** Tokens of the answer. */
  output: number;
  count: Count;
}

/**
 * A prompt as the blocks that its provider sees: the tools, the system text, then for each message its text, each
 * call, each result. Blocks are memoized per message, so a long log is counted once and not once per request.
 */
export function cacheRequestOf(prompt: CachedPrompt, { at, output, count }: CacheFacts): CacheRequest {
  const memo = memoOf(count);
  const blocks: CacheBlock[] = [];
  /** Index of the last block of each message, or of the message before it if it has none. */
  const ends: number[] = [];
  const tools = toolsBlock(prompt.tools, memo, count);
  if (tools) blocks.push(tools);
  for (const message of prompt.messages) {
    const { reasoning, rest } =
      message.role === 'system' ? systemBlocks(message, memo, count) : partsOf(message, memo, count);
    if (reasoning && isOwnReasoning(message, prompt)) blocks.push(reasoning);
    for (const block of rest) blocks.push(block);
    ends.push(blocks.length - 1);
  }
  const marked = prompt.breakpoints.map((index) => ends[index] ?? -1).filter((end) => end >= 0);
  return {
    at,
    key: `${prompt.conversation}/${prompt.agent}`,
    variant: hashText(JSON.stringify([prompt.provider, prompt.model, tools?.hash ?? null])),
    blocks,
    breakpoints: [...new Set(marked)].toSorted((a, b) => a - b),
    output,
  };
}

/** Counts messages beforehand, in steps: counting a long log at once would block other work. */
export function* countMessages(messages: readonly PromptMessage[], count: Count): Steps<void> {
  const memo = memoOf(count);
  for (const message of messages) {
    if (message.role === 'system' || memo.messages.has(message)) continue;
    memo.messages.set(message, yield* split(message, count));
  }
}

interface Parts {
  /** Sent only to the model that signed it. */
  reasoning: CacheBlock | null;
  rest: readonly CacheBlock[];
}

/** Messages and tools keep their identity from prompt to prompt. The system message is new for each. */
interface Memo {
  messages: WeakMap<PromptMessage, Parts>;
  tools: WeakMap<ToolSpec, CacheBlock>;
  system: { text: string; parts: Parts } | null;
}

const MEMOS = new WeakMap<Count, Memo>();

function memoOf(count: Count): Memo {
  const known = MEMOS.get(count);
  if (known) return known;
  const memo: Memo = { messages: new WeakMap(), tools: new WeakMap(), system: null };
  MEMOS.set(count, memo);
  return memo;
}

function toolsBlock(tools: readonly ToolSpec[], memo: Memo, count: Count): CacheBlock | null {
  if (tools.length === 0) return null;
  const each = tools.map((tool) => {
    const block = memo.tools.get(tool) ?? atOnce(blockOf('tool', JSON.stringify(tool), count));
    memo.tools.set(tool, block);
    return block;
  });
  return {
    hash: hashText(each.map(({ hash }) => hash).join('\n')),
    tokens: each.reduce((sum, { tokens }) => sum + tokens, 0),
  };
}

function systemBlocks(message: PromptMessage, memo: Memo, count: Count): Parts {
  if (memo.system?.text !== message.content) {
    memo.system = { text: message.content, parts: atOnce(split(message, count)) };
  }
  return memo.system.parts;
}

function partsOf(message: PromptMessage, memo: Memo, count: Count): Parts {
  const known = memo.messages.get(message);
  if (known) return known;
  const parts = atOnce(split(message, count));
  memo.messages.set(message, parts);
  return parts;
}

function* split(message: PromptMessage, count: Count): Steps<Parts> {
  const { role, content } = message;
  if (role === 'tool') {
    const { call, failed } = message;
    return { reasoning: null, rest: [yield* blockOf(`tool ${call} ${failed}`, content, count)] };
  }
  const text = content.trim() === '' ? [] : [yield* blockOf(role, content, count)];
  if (role === 'user') return { reasoning: null, rest: [...imageBlocks(message.images), ...text] };
  if (role !== 'assistant') return { reasoning: null, rest: text };
  const { reasoning, calls = [] } = message;
  const signed = reasoning?.signature === undefined ? null : `${reasoning.text}\n${reasoning.signature}`;
  const rest = [...text];
  for (const { id, name, args } of calls) rest.push(yield* blockOf(`call ${id}`, `${name} ${args}`, count));
  return { reasoning: signed === null ? null : yield* blockOf('reasoning', signed, count), rest };
}

/** Adapters send images before the text. */
function imageBlocks(images: readonly ImageRef[] = []): CacheBlock[] {
  return images.map(({ hash }) => ({ hash: hashText(`image\n${hash}`), tokens: IMAGE_TOKENS }));
}

function* blockOf(role: string, text: string, count: Count): Steps<CacheBlock> {
  const hash = yield* hashSteps([`${role}\n`, text]);
  const tokens = count(text);
  // Counting takes several times as long as hashing.
  yield 4 * text.length;
  return { hash, tokens };
}

function isOwnReasoning(message: PromptMessage, { provider, model }: CachedPrompt): boolean {
  if (message.role !== 'assistant') return false;
  return message.reasoning?.provider === provider && message.reasoning.model === model;
}
