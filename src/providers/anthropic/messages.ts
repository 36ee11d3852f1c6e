import type Anthropic from '@anthropic-ai/sdk';
import { fitCallId, fitToolName, parseArgs, shownImages, argsText, mintCallId } from '../call-text.ts';
import {
  isExactInteger,
  type PromptMessage,
  type Reasoning,
  type ToolCall,
  NO_USAGE,
  type Usage,
} from '../../events/index.ts';
import type { ModelRequest, ModelEvent, ResponseName } from '../provider.ts';
import type { StreamWatch } from '../guard-stream.ts';
import { vendorEnd } from '../stop-reasons.ts';
import type { ReplyMeter } from '../reply-limits.ts';

type Body = Anthropic.MessageCreateParamsStreaming;
type Block = Anthropic.ContentBlockParam;
type Thinking = Anthropic.ThinkingBlockParam | Anthropic.RedactedThinkingBlockParam;
/** A thinking block, with the number of visible blocks (text, calls) before it. */
type PlacedThinking = Thinking & { at?: number };
interface Turn {
  role: 'user' | 'assistant';
  content: Block[];
}

const CALL_ID = /^[A-Za-z0-9_-]{1,64}$/;
const MAX_BREAKPOINTS = 4;
const CACHE = { type: 'ephemeral' } as const;
/** Prefix of a signature that holds several thinking blocks: StepBody has room for one text and one signature. */
const BLOCKS_PREFIX = 'blocks:';

/** The request body. Anthropic requires alternating roles, tool results before text, and no empty text block. */
export function anthropicBody(request: ModelRequest, provider: string, isForeign = false): Body {
  // Kimi and others want their own ids and unsigned thoughts back. Claude takes neither, at whichever server it is.
  const own: Own = { provider, takesAll: isForeign && !/claude/i.test(request.model) };
  const system: Anthropic.TextBlockParam[] = [];
  const turns: Turn[] = [];
  /** The last block of each message; undefined if the message yields none. */
  const ends: (Block | undefined)[] = [];
  for (const message of request.messages) {
    if (message.role === 'system' && turns.length === 0) {
      const block = textBlock(message.content);
      if (block) system.push(block);
      ends.push(block);
      continue;
    }
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const blocks = blocksOf(message, request, own);
    if (blocks.length > 0) addBlocks(turns, role, blocks);
    ends.push(blocks.findLast(isMarkable));
  }
  const tools = request.tools.map((tool): Anthropic.Tool => ({
    name: tool.name,
    description: tool.description,
    input_schema: { type: 'object', ...tool.parameters },
  }));
  markBreakpoints(request.breakpoints, ends, system.at(-1) ?? tools.at(-1));
  const body: Body = {
    model: request.model,
    max_tokens: request.maxOutputTokens,
    messages: turns,
    stream: true,
  };
  if (system.length > 0) body.system = system;
  if (tools.length > 0) body.tools = tools;
  return body;
}

function addBlocks(turns: Turn[], role: Turn['role'], blocks: Block[]): void {
  const last = turns.at(-1);
  if (last?.role !== role) {
    turns.push({ role, content: blocks });
    return;
  }
  if (blocks[0]?.type !== 'tool_result') {
    last.content.push(...blocks);
    return;
  }
  const text = last.content.findIndex((block) => block.type !== 'tool_result');
  last.content.splice(text < 0 ? last.content.length : text, 0, ...blocks);
}

interface Own {
  provider: string;
  /** Calls may have any id, and thinking no signature. */
  takesAll: boolean;
}

function blocksOf(
  message: PromptMessage,
  { model, images }: ModelRequest,
  { provider, takesAll }: Own,
): Block[] {
  const fitId = (id: string) => (takesAll ? id : fitCallId(id, CALL_ID));
  const text = textBlock(message.content);
  switch (message.role) {
    case 'system':
      return text ? [text] : [];
    case 'user':
      // Images come before the text, as the vendor advises.
      return [...shownImages(message.images, images).map(imageBlock), ...(text ? [text] : [])];
    case 'tool':
      return [
        {
          type: 'tool_result',
          tool_use_id: fitId(message.call),
          ...(text ? { content: text.text } : {}),
          ...(message.failed ? { is_error: true } : {}),
        },
      ];
    case 'assistant': {
      const { reasoning } = message;
      // A signature is valid only for the model that made it, and only before the calls that it led to.
      const isOwn = reasoning?.provider === provider && reasoning.model === model;
      const calls = (message.calls ?? []).map((call) => callBlock(call, fitId));
      const blocks = [...(text ? [text] : []), ...calls];
      return isOwn ? weave(blocks, thinkingOf(reasoning, takesAll)) : blocks;
    }
  }
}

function callBlock({ id, name, args }: ToolCall, fitId: (id: string) => string): Block {
  const input = wellFormed(parseArgs(args) ?? {});
  return { type: 'tool_use', id: fitId(id), name: fitToolName(name), input };
}

function imageBlock({ mediaType, data }: ReturnType<typeof shownImages>[number]): Anthropic.ImageBlockParam {
  return { type: 'image', source: { type: 'base64', media_type: mediaType, data } };
}

function textBlock(text: string): Anthropic.TextBlockParam | undefined {
  return text.trim() === '' ? undefined : { type: 'text', text: text.toWellFormed() };
}

function thinkingOf({ text, signature }: Reasoning, takesAll: boolean): PlacedThinking[] {
  if (signature === '' && takesAll && text !== '') return [{ type: 'thinking', thinking: text, signature }];
  if (!signature) return [];
  if (!signature.startsWith(BLOCKS_PREFIX)) return [{ type: 'thinking', thinking: text, signature }];
  return JSON.parse(signature.slice(BLOCKS_PREFIX.length)) as PlacedThinking[];
}

/**
 * Puts thinking back to its place, as the vendor requires. Thinking that would end a message goes before its last
 * block.
 */
function weave(visible: readonly Block[], thinking: readonly PlacedThinking[]): Block[] {
  const last = visible.length - 1;
  const placed = thinking.map(({ at = 0, ...block }) => ({ at: Math.min(at, Math.max(0, last)), block }));
  if (last < 0) return placed.map(({ block }) => block);
  return visible.flatMap((each, index) => [
    ...placed.filter(({ at }) => at === index).map(({ block }) => block),
    each,
  ]);
}

/** JSON may hold lone surrogates as escapes; the parsed text cannot be encoded as UTF-8. */
function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  if (typeof value !== 'object' || value === null || isExactInteger(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key.toWellFormed(), wellFormed(item)]),
  );
}

type Markable = Anthropic.TextBlockParam | Anthropic.ToolResultBlockParam | Anthropic.ToolUseBlockParam;

function isMarkable(block: Block): block is Markable {
  return block.type === 'text' || block.type === 'tool_result' || block.type === 'tool_use';
}

/**
 * Sets at most four breakpoints: the end of tools and system, which changes least, then the latest. Sets none if none
 * are asked for.
 */
function markBreakpoints(
  breakpoints: readonly number[],
  ends: readonly (Block | undefined)[],
  prefix: Anthropic.TextBlockParam | Anthropic.Tool | undefined,
): void {
  if (breakpoints.length === 0) return;
  const marked = new Set<{ cache_control?: Anthropic.CacheControlEphemeral | null }>();
  if (prefix) marked.add(prefix);
  for (const index of breakpoints.toSorted((a, b) => b - a)) {
    if (marked.size >= MAX_BREAKPOINTS) break;
    const end = ends.slice(0, index + 1).findLast((block) => block !== undefined);
    if (end && isMarkable(end)) marked.add(end);
  }
  for (const block of marked) block.cache_control = CACHE;
}

type Open =
  | { type: 'thinking'; thinking: string; signature: string }
  | { type: 'redacted_thinking'; data: string }
  | { type: 'text' }
  /** `given`: the input with the block's start, which servers that only resemble Anthropic's give whole. */
  | { type: 'tool_use'; id: string; name: string; args: string; given: string };

/** Converts stream events to model events. Reasoning and calls are yielded whole when the stop reason is known. */
export async function* readMessageEvents(
  events: AsyncIterable<StreamEvent | Anthropic.Message>,
  request: ModelRequest,
  provider: string,
  { touch, meter }: Pick<StreamWatch, 'touch' | 'meter'>,
): AsyncGenerator<ModelEvent> {
  const blocks: Open[] = [];
  /** By index. Servers that number all blocks 0 mean the last one. */
  const open = new Map<number, Open>();
  let usage = NO_USAGE;
  let response: ResponseName = {};
  let stop: string | null = null;
  let hasThought = false;
  try {
    for await (const event of wholeInPieces(events)) {
      touch();
      if (event.type === 'message_start') {
        const { usage: first, model, id } = event.message;
        usage = mergeUsage(usage, first);
        response = { model, id };
      }
      if (event.type === 'content_block_start') {
        const block = openBlock(event.content_block);
        meterBlock(block, meter);
        if (block) {
          yield* begun(block, hasThought);
          hasThought ||= isThought(block);
          blocks.push(block);
          open.set(event.index, block);
        }
        if (event.content_block.type === 'text' && event.content_block.text)
          yield { type: 'text', delta: event.content_block.text };
      }
      if (event.type === 'content_block_delta') {
        const block = open.get(event.index);
        if (event.delta.type !== 'text_delta') extendBlock(block, event.delta, meter);
        yield* piecesOf(block, event.delta);
      }
      if (event.type === 'message_delta') {
        stop = event.delta.stop_reason ?? stop;
        usage = mergeUsage(usage, event.usage);
      }
    }
  } catch (thrown) {
    // After the stop reason, nothing of the answer is missing.
    if (stop === null) throw thrown;
  }
  if (stop !== null) yield* ended(blocks, stop, { usage, response }, { request, provider });
}

function* ended(
  blocks: readonly Open[],
  stop: string,
  reported: { usage: Usage; response: ResponseName },
  { request, provider }: { request: ModelRequest; provider: string },
): Generator<ModelEvent> {
  const called = blocks.some(({ type }) => type === 'tool_use');
  const end = vendorEnd(stop, called);
  if ('failed' in end) return yield { type: 'failed', error: end.failed };
  yield* finish(blocks, request, provider);
  yield { type: 'done', ...end, ...reported };
}

type StreamEvent = Anthropic.RawMessageStreamEvent;

/** Some servers and proxies answer with the whole message, as if no stream had been asked for. */
async function* wholeInPieces(
  events: AsyncIterable<StreamEvent | Anthropic.Message>,
): AsyncGenerator<StreamEvent> {
  for await (const event of events) {
    if (event.type !== 'message') {
      yield event;
      continue;
    }
    const { content, stop_reason, usage } = event;
    yield { type: 'message_start', message: event };
    for (const [index, block] of (content ?? []).entries()) {
      yield { type: 'content_block_start', index, content_block: block };
      if (block.type !== 'tool_use') continue;
      const delta = { type: 'input_json_delta' as const, partial_json: JSON.stringify(block.input ?? {}) };
      yield { type: 'content_block_delta', index, delta };
    }
    const delta = { stop_reason } as Anthropic.RawMessageDeltaEvent['delta'];
    yield { type: 'message_delta', delta, usage: usage as unknown as Anthropic.MessageDeltaUsage };
  }
}

function* begun(block: Open, hasThought: boolean): Generator<ModelEvent> {
  if (block.type === 'tool_use') yield { type: 'calling', id: block.id, name: block.name, delta: '' };
  if (!isThought(block)) return;
  if (hasThought) yield { type: 'thinking', delta: BETWEEN_THOUGHTS };
  if (block.type === 'thinking' && block.thinking !== '') yield { type: 'thinking', delta: block.thinking };
}

function* piecesOf(block: Open | undefined, delta: Anthropic.RawContentBlockDelta): Generator<ModelEvent> {
  if (delta.type === 'text_delta' && delta.text) yield { type: 'text', delta: delta.text };
  if (delta.type === 'thinking_delta' && block?.type === 'thinking' && delta.thinking)
    yield { type: 'thinking', delta: delta.thinking };
  const piece = delta.type === 'input_json_delta' ? pieceOf(delta.partial_json) : '';
  if (piece !== '' && block?.type === 'tool_use')
    yield { type: 'calling', id: block.id, name: block.name, delta: piece };
}

/** Some servers send an object in place of its text. */
function pieceOf(given: unknown): string {
  return typeof given === 'string' ? given : argsText(given);
}

function* finish(blocks: readonly Open[], request: ModelRequest, provider: string): Generator<ModelEvent> {
  const thoughts = thoughtsOf(blocks);
  const [only] = thoughts;
  if (only) {
    const text = thoughts
      .map((thought) => (thought.type === 'thinking' ? thought.thinking : ''))
      .join(BETWEEN_THOUGHTS);
    const isSingle = thoughts.length === 1 && only.type === 'thinking' && only.at === undefined;
    const signature = isSingle ? only.signature : `${BLOCKS_PREFIX}${JSON.stringify(thoughts)}`;
    yield { type: 'reasoning', reasoning: { text, signature, provider, model: request.model } };
  }
  for (const [i, block] of blocks.entries()) {
    if (block.type !== 'tool_use') continue;
    const id = block.id || mintCallId(request.trace, i);
    yield { type: 'call', call: { id, name: block.name, args: inputOf(block) } };
  }
}

/** The pieces count, unless the start has all and they have less. */
function inputOf({ args, given }: Extract<Open, { type: 'tool_use' }>): string {
  const isLess = given !== '' && Object.keys(parseArgs(args) ?? {}).length === 0;
  return isLess ? given : args || '{}';
}

const BETWEEN_THOUGHTS = '\n\n';

function isThought({ type }: Open): boolean {
  return type === 'thinking' || type === 'redacted_thinking';
}

/** Thinking blocks with their positions among the visible blocks. Several texts are one text in the log. */
function thoughtsOf(blocks: readonly Open[]): PlacedThinking[] {
  const thoughts: PlacedThinking[] = [];
  let at = 0;
  let spoke = false;
  for (const block of blocks) {
    if (block.type === 'tool_use' || (block.type === 'text' && !spoke)) at += 1;
    if (block.type === 'text') spoke = true;
    if (block.type === 'thinking' || block.type === 'redacted_thinking')
      thoughts.push(at === 0 ? block : { ...block, at });
  }
  return thoughts;
}

function openBlock(block: Anthropic.ContentBlock): Open | null {
  if (block.type === 'thinking')
    return { type: 'thinking', thinking: block.thinking ?? '', signature: block.signature ?? '' };
  if (block.type === 'redacted_thinking') return { type: 'redacted_thinking', data: block.data };
  if (block.type === 'text') return { type: 'text' };
  if (block.type !== 'tool_use') return null;
  const given = argsText(block.input);
  return { type: 'tool_use', id: block.id, name: block.name, args: '', given: given === '{}' ? '' : given };
}

/** Size charged for a block, even an empty one. */
const EMPTY_BLOCK = ' '.repeat(64);

function meterBlock(block: Open | null, meter: ReplyMeter): void {
  meter.reasoning(EMPTY_BLOCK);
  if (block?.type === 'tool_use') {
    meter.call();
    meter.arguments(block.given);
  }
  if (block?.type === 'redacted_thinking') meter.reasoning(block.data);
  if (block?.type !== 'thinking') return;
  meter.reasoning(block.thinking);
  meter.reasoning(block.signature);
}

function extendBlock(
  block: Open | undefined,
  delta: Anthropic.RawContentBlockDelta,
  meter: ReplyMeter,
): void {
  if (block?.type === 'tool_use' && delta.type === 'input_json_delta') {
    const piece = pieceOf(delta.partial_json);
    meter.arguments(piece);
    block.args += piece;
  }
  if (block?.type !== 'thinking') return;
  if (delta.type === 'thinking_delta') {
    meter.reasoning(delta.thinking);
    block.thinking += delta.thinking;
  }
  if (delta.type === 'signature_delta') {
    meter.reasoning(delta.signature);
    block.signature += delta.signature;
  }
}

/**
 * Later figures replace earlier ones; missing fields keep theirs. Anthropic's input excludes cache reads and writes.
 */
function mergeUsage(known: Usage, said: Partial<Anthropic.MessageDeltaUsage> | null | undefined): Usage {
  if (!said) return known;
  const cacheRead = said.cache_read_input_tokens ?? known.cacheRead;
  const cacheWrite = said.cache_creation_input_tokens ?? known.cacheWrite;
  const fresh = said.input_tokens ?? known.input - known.cacheRead - known.cacheWrite;
  return {
    input: fresh + cacheRead + cacheWrite,
    output: said.output_tokens ?? known.output,
    cacheRead,
    cacheWrite,
    reasoning: said.output_tokens_details?.thinking_tokens ?? known.reasoning,
  };
}
