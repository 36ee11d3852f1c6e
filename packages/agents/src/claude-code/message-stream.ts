import {
  type ModelEvent,
  type ModelRequest,
  NO_USAGE,
  type ResponseName,
  type StreamWatch,
  type Usage,
  vendorEnd,
} from '../troupe.ts';

/** The events of the Messages API that Claude Code passes on, with the fields that we read. */
export type MessageEvent =
  | { type: 'message_start'; message: { id: string; model: string; usage?: Partial<TokenCounts> | null } }
  | { type: 'content_block_start'; index: number; content_block: ContentBlock }
  | { type: 'content_block_delta'; index: number; delta: BlockDelta }
  | {
      type: 'message_delta';
      delta: { stop_reason?: string | null };
      usage?: Partial<TokenCounts> | null;
    }
  | { type: 'content_block_stop' | 'message_stop' };

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
  input_tokens: number | null;
  output_tokens: number | null;
  cache_read_input_tokens: number | null;
  cache_creation_input_tokens: number | null;
  output_tokens_details: { thinking_tokens?: number | null } | null;
}

type Thought = { type: 'thinking'; thinking: string; signature: string } | Redacted;
type Redacted = { type: 'redacted_thinking'; data: string };
/** `given`: the input with the block's start, which some servers give whole. */
type Called = { type: 'tool_use'; id: string; name: string; args: string; given: string };
type Open = Thought | Called | { type: 'text' };

const BETWEEN_THOUGHTS = '\n\n';
/** Size charged for a block, even an empty one. */
const EMPTY_BLOCK = ' '.repeat(64);

/** One answer of the model, from Claude Code's stream. Reasoning and calls are yielded whole when the stop reason is known. */
export async function* readMessage(
  events: AsyncIterable<MessageEvent>,
  request: ModelRequest,
  provider: string,
  { touch, meter }: Pick<StreamWatch, 'touch' | 'meter'>,
): AsyncGenerator<ModelEvent> {
  const blocks: Open[] = [];
  const open = new Map<number, Open>();
  let usage = NO_USAGE;
  let response: ResponseName = {};
  let stop: string | null = null;
  try {
    for await (const event of events) {
      touch();
      if (event.type === 'message_start') {
        const { id, model } = event.message;
        usage = withCounts(usage, event.message.usage);
        response = { model, id };
      }
      if (event.type === 'content_block_start') {
        const block = opened(event.content_block);
        meter.reasoning(EMPTY_BLOCK);
        if (!block) continue;
        yield* started(block, event.content_block, { hasThought: blocks.some(isThought), meter });
        blocks.push(block);
        open.set(event.index, block);
      }
      if (event.type === 'content_block_delta') yield* extended(open.get(event.index), event.delta, meter);
      if (event.type === 'message_delta') {
        stop = event.delta.stop_reason ?? stop;
        usage = withCounts(usage, event.usage);
      }
    }
  } catch (thrown) {
    // After the stop reason, nothing of the answer is missing.
    if (stop === null) throw thrown;
  }
  if (stop !== null) yield* ended(blocks, stop, { provider, model: request.model }, { usage, response });
}

function* ended(
  blocks: readonly Open[],
  stop: string,
  by: { provider: string; model: string },
  reported: { usage: Usage; response: ResponseName },
): Generator<ModelEvent> {
  const end = vendorEnd(stop, blocks.some(isCall));
  if ('failed' in end) return yield { type: 'failed', error: end.failed };
  yield* reasoningOf(blocks, by);
  for (const { id, name, args, given } of blocks.filter(isCall))
    yield { type: 'call', call: { id, name, args: args || given || '{}' } };
  yield { type: 'done', ...end, ...reported };
}

function opened(block: ContentBlock): Open | null {
  switch (block.type) {
    case 'thinking':
      return { type: 'thinking', thinking: block.thinking ?? '', signature: block.signature ?? '' };
    case 'redacted_thinking':
      return { type: 'redacted_thinking', data: block.data };
    case 'text':
      return { type: 'text' };
    case 'tool_use': {
      const given = JSON.stringify(block.input ?? {});
      return {
        type: 'tool_use',
        id: block.id,
        name: block.name,
        args: '',
        given: given === '{}' ? '' : given,
      };
    }
    default:
      return null; // A kind of block that is not known yet.
  }
}

function* started(
  block: Open,
  said: ContentBlock,
  { hasThought, meter }: { hasThought: boolean; meter: StreamWatch['meter'] },
): Generator<ModelEvent> {
  if (said.type === 'text' && said.text) yield { type: 'text', delta: said.text };
  if (block.type === 'tool_use') {
    meter.call();
    meter.arguments(block.given);
    yield { type: 'calling', id: block.id, name: block.name, delta: '' };
  }
  if (isThought(block) && hasThought) yield { type: 'thinking', delta: BETWEEN_THOUGHTS };
  if (block.type === 'redacted_thinking') meter.reasoning(block.data);
  if (block.type !== 'thinking') return;
  meter.reasoning(block.thinking + block.signature);
  if (block.thinking !== '') yield { type: 'thinking', delta: block.thinking };
}

function* extended(
  block: Open | undefined,
  delta: BlockDelta,
  meter: StreamWatch['meter'],
): Generator<ModelEvent> {
  if (delta.type === 'text_delta' && delta.text) yield { type: 'text', delta: delta.text };
  if (delta.type === 'input_json_delta' && block?.type === 'tool_use') {
    const piece = delta.partial_json;
    meter.arguments(piece);
    block.args += piece;
    if (piece !== '') yield { type: 'calling', id: block.id, name: block.name, delta: piece };
  }
  if (block?.type !== 'thinking') return;
  if (delta.type === 'thinking_delta') {
    meter.reasoning(delta.thinking);
    block.thinking += delta.thinking;
    if (delta.thinking) yield { type: 'thinking', delta: delta.thinking };
  }
  if (delta.type === 'signature_delta') {
    meter.reasoning(delta.signature);
    block.signature += delta.signature;
  }
}

/** The session keeps the signatures: that of a single thought is passed on, and several have none. */
function* reasoningOf(
  blocks: readonly Open[],
  by: { provider: string; model: string },
): Generator<ModelEvent> {
  const thoughts = blocks.filter(isThought);
  if (thoughts.length === 0) return;
  const text = thoughts.map((each) => (each.type === 'thinking' ? each.thinking : '')).join(BETWEEN_THOUGHTS);
  const [only] = thoughts;
  const signature = thoughts.length === 1 && only?.type === 'thinking' ? only.signature : '';
  yield { type: 'reasoning', reasoning: { text, signature, ...by } };
}

function isThought(block: Open): block is Thought {
  return block.type === 'thinking' || block.type === 'redacted_thinking';
}

function isCall(block: Open): block is Called {
  return block.type === 'tool_use';
}

/** Later figures replace earlier ones; missing fields keep theirs. */
function withCounts(known: Usage, said: Partial<TokenCounts> | null | undefined): Usage {
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
