import type Anthropic from '@anthropic-ai/sdk';
import { fitCallId, fitToolName, parseArgs, shownImages } from '../call-text.ts';
import { isExactInteger, type PromptMessage, type Reasoning, type ToolCall } from '../../events/index.ts';
import type { PlacedThought } from '../message-stream.ts';
import type { ModelRequest } from '../provider.ts';

type Body = Anthropic.MessageCreateParamsStreaming;
type Block = Anthropic.ContentBlockParam;
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

/** The signature that gives several thoughts back to the vendor. */
export function signatureOf(thoughts: readonly PlacedThought[]): string {
  return `${BLOCKS_PREFIX}${JSON.stringify(thoughts)}`;
}

function thinkingOf({ text, signature }: Reasoning, takesAll: boolean): PlacedThought[] {
  if (signature === '' && takesAll && text !== '') return [{ type: 'thinking', thinking: text, signature }];
  if (!signature) return [];
  if (!signature.startsWith(BLOCKS_PREFIX)) return [{ type: 'thinking', thinking: text, signature }];
  return JSON.parse(signature.slice(BLOCKS_PREFIX.length)) as PlacedThought[];
}

/**
 * Puts thinking back to its place, as the vendor requires. Thinking that would end a message goes before its last
 * block.
 */
function weave(visible: readonly Block[], thinking: readonly PlacedThought[]): Block[] {
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
