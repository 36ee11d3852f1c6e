import { mintCallId, parseArgs, argsText } from './call-text.ts';
import { NO_USAGE, type Usage } from '../events/index.ts';
import type { StreamWatch } from './guard-stream.ts';
import type { ModelEvent, ModelRequest, ResponseName } from './provider.ts';
import type { ReplyMeter } from './reply-limits.ts';
import { vendorEnd } from './stop-reasons.ts';

/** The events of Anthropic's Messages API, with the fields that Troupe reads. */
export type MessageEvent =
  | { type: 'message_start'; message: { id: string; model: string; usage?: Partial<TokenCounts> | null } }
  | { type: 'content_block_start'; index: number; content_block: ContentBlock }
  | { type: 'content_block_delta'; index: number; delta: BlockDelta }
  | {
      type: 'message_delta';
      delta: { stop_reason?: string | null | undefined };
      usage?: Partial<TokenCounts> | null | undefined;
    }
  | { type: 'content_block_stop' | 'message_stop' };

/** An answer that did not arrive as a stream. */
interface WholeMessage {
  type: 'message';
  /** Its id. */
  id: string;
  /** The model that answered. */
  model: string;
  /** Its parts, in order. */
  content?: ContentBlock[] | null;
  /** Reason for its end. */
  stop_reason?: string | null;
  /** Tokens that it took. */
  usage?: Partial<TokenCounts> | null;
}

type ContentBlock =
  | { type: 'thinking'; thinking?: string; signature?: string }
  | { type: 'redacted_thinking'; data: string }
  | { type: 'text'; text?: string }
  | { type: 'tool_use'; id: string; name: string; input?: unknown };

type BlockDelta =
  | { type: 'text_delta'; text: string }
  | { type: 'thinking_delta'; thinking: string }
  | { type: 'signature_delta'; signature: string }
  | { type: 'input_json_delta'; partial_json: string };

/** Input excludes cache reads and writes. */
interface TokenCounts {
  /** Neither read from a cache nor written to one. */
  input_tokens: number | null;
  /** With reasoning. */
  output_tokens: number | null;
  /** Read from a cache. */
  cache_read_input_tokens: number | null;
  /** Written to a cache. */
  cache_creation_input_tokens: number | null;
  /** How many of the output were reasoning. */
  output_tokens_details: { thinking_tokens?: number | null } | null;
}

type Thought =
  | { type: 'thinking'; thinking: string; signature: string }
  | { type: 'redacted_thinking'; data: string };
/** A thinking block, with the number of visible blocks (text, calls) before it. Default 0. */
export type PlacedThought = Thought & { at?: number };
type Open =
  | Thought
  | { type: 'text' }
  /** `given`: input that came with the start of the block. Servers that only resemble Anthropic's send all of it there. */
  | { type: 'tool_use'; id: string; name: string; args: string; given: string };

/** How one provider reads answers. */
interface MessageReader {
  /** Name of the provider. */
  provider: string;
  /** What the log keeps in order to send back several thoughts, or one that stands within the text. */
  signatureOf: (thoughts: readonly PlacedThought[]) => string;
}

/** Converts stream events to model events. Reasoning and calls are yielded whole, once the stop reason is known. */
export async function* readMessageEvents(
  events: AsyncIterable<MessageEvent | WholeMessage>,
  request: ModelRequest,
  reader: MessageReader,
  { touch, meter }: Pick<StreamWatch, 'touch' | 'meter'>,
): AsyncGenerator<ModelEvent> {
  const blocks: Open[] = [];
  /** Open blocks by index. Where a server numbers all blocks 0, this holds the last one. */
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
    // An error after the stop reason loses nothing of the answer.
    if (stop === null) throw thrown;
  }
  if (stop !== null) yield* ended(blocks, stop, { usage, response }, { request, reader });
}

function* ended(
  blocks: readonly Open[],
  stop: string,
  reported: { usage: Usage; response: ResponseName },
  { request, reader }: { request: ModelRequest; reader: MessageReader },
): Generator<ModelEvent> {
  const called = blocks.some(({ type }) => type === 'tool_use');
  const end = vendorEnd(stop, called);
  if ('failed' in end) return yield { type: 'failed', error: end.failed };
  yield* finish(blocks, request, reader);
  yield { type: 'done', ...end, ...reported };
}

/** Some servers and proxies ignore the request for a stream and answer with the whole message. */
async function* wholeInPieces(
  events: AsyncIterable<MessageEvent | WholeMessage>,
): AsyncGenerator<MessageEvent> {
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
    yield { type: 'message_delta', delta: { stop_reason }, usage };
  }
}

function* begun(block: Open, hasThought: boolean): Generator<ModelEvent> {
  if (block.type === 'tool_use') yield { type: 'calling', id: block.id, name: block.name, delta: '' };
  if (!isThought(block)) return;
  if (hasThought) yield { type: 'thinking', delta: BETWEEN_THOUGHTS };
  if (block.type === 'thinking' && block.thinking !== '') yield { type: 'thinking', delta: block.thinking };
}

function* piecesOf(block: Open | undefined, delta: BlockDelta): Generator<ModelEvent> {
  if (delta.type === 'text_delta' && delta.text) yield { type: 'text', delta: delta.text };
  if (delta.type === 'thinking_delta' && block?.type === 'thinking' && delta.thinking)
    yield { type: 'thinking', delta: delta.thinking };
  const piece = delta.type === 'input_json_delta' ? pieceOf(delta.partial_json) : '';
  if (piece !== '' && block?.type === 'tool_use')
    yield { type: 'calling', id: block.id, name: block.name, delta: piece };
}

/** Some servers send an object instead of text. */
function pieceOf(given: unknown): string {
  return typeof given === 'string' ? given : argsText(given);
}

function* finish(
  blocks: readonly Open[],
  request: ModelRequest,
  { provider, signatureOf }: MessageReader,
): Generator<ModelEvent> {
  const thoughts = thoughtsOf(blocks);
  const [only] = thoughts;
  if (only) {
    const text = thoughts
      .map((thought) => (thought.type === 'thinking' ? thought.thinking : ''))
      .join(BETWEEN_THOUGHTS);
    const isSingle = thoughts.length === 1 && only.type === 'thinking' && only.at === undefined;
    const signature = isSingle ? only.signature : signatureOf(thoughts);
    yield { type: 'reasoning', reasoning: { text, signature, provider, model: request.model } };
  }
  for (const [i, block] of blocks.entries()) {
    if (block.type !== 'tool_use') continue;
    const id = block.id || mintCallId(request.trace, i);
    yield { type: 'call', call: { id, name: block.name, args: inputOf(block) } };
  }
}

/** The pieces win, unless the start of the block has the whole input and they do not. */
function inputOf({ args, given }: Extract<Open, { type: 'tool_use' }>): string {
  const isLess = given !== '' && Object.keys(parseArgs(args) ?? {}).length === 0;
  return isLess ? given : args || '{}';
}

const BETWEEN_THOUGHTS = '\n\n';

function isThought(block: Open): block is Thought {
  return block.type === 'thinking' || block.type === 'redacted_thinking';
}

/** Thinking blocks with their positions among the visible blocks. The log joins several texts to one. */
function thoughtsOf(blocks: readonly Open[]): PlacedThought[] {
  const thoughts: PlacedThought[] = [];
  let at = 0;
  let spoke = false;
  for (const block of blocks) {
    if (block.type === 'tool_use' || (block.type === 'text' && !spoke)) at += 1;
    if (block.type === 'text') spoke = true;
    if (isThought(block)) thoughts.push(at === 0 ? block : { ...block, at });
  }
  return thoughts;
}

/** Null for an unknown kind of block. */
function openBlock(block: ContentBlock): Open | null {
  if (block.type === 'thinking')
    return { type: 'thinking', thinking: block.thinking ?? '', signature: block.signature ?? '' };
  if (block.type === 'redacted_thinking') return { type: 'redacted_thinking', data: block.data };
  if (block.type === 'text') return { type: 'text' };
  if (block.type !== 'tool_use') return null;
  const given = argsText(block.input);
  return { type: 'tool_use', id: block.id, name: block.name, args: '', given: given === '{}' ? '' : given };
}

/** Characters that even an empty block counts. */
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

function extendBlock(block: Open | undefined, delta: BlockDelta, meter: ReplyMeter): void {
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

/** Later figures replace earlier ones; a missing field keeps its value. Anthropic's input excludes cache reads and writes. */
function mergeUsage(known: Usage, said: Partial<TokenCounts> | null | undefined): Usage {
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
