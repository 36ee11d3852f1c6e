import { createHash } from 'node:crypto';
import type OpenAI from 'openai';
import type { PromptMessage } from '../../events/index.ts';
import { fitArgs, fitCacheKey, fitCallId, fitToolName, shownImages } from '../call-text.ts';
import { appendSchema, shownSchema } from '../plain-schema.ts';
import type { ModelRequest } from '../provider.ts';
import type { ChatQuirks } from './quirks.ts';

type Body = OpenAI.ChatCompletionCreateParamsStreaming & { session_id?: string };
type Message = OpenAI.ChatCompletionMessageParam & { reasoning?: string; reasoning_content?: string };

type Schema = Record<string, unknown>;

// OpenAI refuses ids of more than 40 characters; other servers accept their own ids.
const CALL_ID = /^[\s\S]{1,40}$/;
const NINE = /^[A-Za-z0-9]{9}$/;
/** Filler for vendors that require an assistant message between a tool result and a user message. */
const BRIDGE = 'I have the results.';

export function openAiBody(request: ModelRequest, quirks: ChatQuirks, provider: string): Body {
  const { replySchema, replyFormat = 'json_schema' } = { ...request, ...quirks };
  const shown = (schema: Schema) => shownSchema(schema, quirks.schemas);
  const spoken =
    replySchema && replyFormat !== 'json_schema'
      ? appendSchema(request.messages, replySchema)
      : request.messages;
  const body: Body = {
    model: request.model,
    messages: messagesOf(spoken, quirks, { provider, model: request.model, images: request.images }),
    stream: true,
  };
  body[quirks.maxTokensField ?? 'max_tokens'] = request.maxOutputTokens;
  if (quirks.streamUsage ?? true) body.stream_options = { include_usage: true };
  if (request.tools.length > 0) {
    body.tools = request.tools.map((tool) => ({
      type: 'function',
      function: { ...tool, parameters: shown(tool.parameters) },
    }));
  }
  if (quirks.cacheKeyField) body[quirks.cacheKeyField] = fitCacheKey(request.cacheKey);
  if (replySchema && replyFormat === 'json_object') body.response_format = { type: 'json_object' };
  if (replySchema && replyFormat === 'json_schema') {
    const json_schema = { name: 'reply', schema: shown(replySchema), strict: false };
    body.response_format = { type: 'json_schema', json_schema };
  }
  return body;
}

interface Model {
  provider: string;
  model: string;
  images: Images;
}

type Images = ModelRequest['images'];

function messagesOf(messages: readonly PromptMessage[], quirks: ChatQuirks, model: Model): Message[] {
  const fitId = quirks.callIds === 'nine' ? nineOf : (id: string) => fitCallId(id, CALL_ID);
  const sent: Message[] = [];
  for (const message of messages) {
    const last = sent.at(-1);
    if (quirks.mergeConsecutive && message.role === 'user' && last?.role === 'user') {
      last.content = joined(last.content, userContent(message, model.images));
      continue;
    }
    if (quirks.assistantAfterTool && message.role === 'user' && last?.role === 'tool') {
      sent.push({ role: 'assistant', content: BRIDGE });
    }
    const each = openAiMessage(message, fitId, model.images);
    if (message.role === 'assistant') {
      if (quirks.mergeConsecutive && isSaid(last)) {
        each.content = typeof each.content === 'string' ? `${last.content}\n\n${each.content}` : last.content;
        sent.pop();
      }
      addReasoning(each, message, quirks, model);
    }
    sent.push(each);
  }
  return sent;
}

function addReasoning(
  to: Message,
  { reasoning }: Extract<PromptMessage, { role: 'assistant' }>,
  { reasoningField, reasoningRequired }: ChatQuirks,
  { provider, model }: Model,
): void {
  if (!reasoningField) return;
  const isOwn = reasoning?.provider === provider && reasoning.model === model;
  const text = isOwn ? reasoning.text.toWellFormed() : '';
  if (text !== '' || reasoningRequired) to[reasoningField] = text;
}

/** An assistant message with text and without calls. */
function isSaid(message: Message | undefined): message is Message & { content: string } {
  return message?.role === 'assistant' && !message.tool_calls && typeof message.content === 'string';
}

/** The id itself if it fits, else a digest of nine characters. */
function nineOf(id: string): string {
  if (NINE.test(id)) return id;
  const digest = createHash('sha256').update(id).digest('hex');
  return BigInt(`0x${digest}`).toString(36).slice(-9);
}

type UserContent = string | OpenAI.ChatCompletionContentPart[];

function userContent(message: Extract<PromptMessage, { role: 'user' }>, images: Images): UserContent {
  const text = message.content.toWellFormed();
  const shown = shownImages(message.images, images).map(({ url }) => ({
    type: 'image_url' as const,
    image_url: { url },
  }));
  return shown.length > 0 ? [...shown, { type: 'text', text }] : text;
}

function joined(before: UserContent, after: UserContent): UserContent {
  if (typeof before === 'string' && typeof after === 'string') return `${before}\n\n${after}`;
  return [before, after].flatMap((content) =>
    typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content,
  );
}

function openAiMessage(message: PromptMessage, fitId: (id: string) => string, images: Images): Message {
  const content = message.content.toWellFormed();
  switch (message.role) {
    case 'system':
      return { role: 'system', content };
    case 'user':
      return { role: 'user', content: userContent(message, images) };
    case 'tool':
      return { role: 'tool', tool_call_id: fitId(message.call), content };
    case 'assistant': {
      if (!message.calls?.length) return { role: 'assistant', content };
      const calls = message.calls.map((call) => ({
        type: 'function' as const,
        id: fitId(call.id),
        function: { name: fitToolName(call.name), arguments: fitArgs(call.args) },
      }));
      return { role: 'assistant', content: content === '' ? null : content, tool_calls: calls };
    }
  }
}
