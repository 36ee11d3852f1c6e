import { createHash } from 'node:crypto';
import type OpenAI from 'openai';
import type { PromptMessage } from '../../events/index.ts';
import { fitArgs, fitCacheKey, fitCallId, fitToolName, shownImages } from '../call-text.ts';
import { appendSchema, shownSchema } from '../plain-schema.ts';
import type { ModelRequest } from '../provider.ts';
import { type Attached, type AttachedCall, attachedIn, type ThoughtField } from './attachments.ts';
import type { ChatQuirks, VendorRules } from './quirks.ts';

type Body = OpenAI.ChatCompletionCreateParamsStreaming & { session_id?: string };
type Message = OpenAI.ChatCompletionMessageParam & { [field in ThoughtField]?: string };

type Schema = Record<string, unknown>;

/** Azure and OpenAI: "Expected a string with maximum length 40". All others take this much of other models' ids too. */
const FORTY = /^[\s\S]{1,40}$/;
const NINE = /^[A-Za-z0-9]{9}$/;
/** Filler for vendors that require an assistant message between a tool result and a user message. */
const BRIDGE = 'I have the results.';

export function openAiBody(request: ModelRequest, vendor: VendorRules, provider: string): Body {
  const quirks = CHECKS_SIGNATURES.test(request.model) ? vendor : { ...vendor, unsigned: undefined };
  const { replySchema, replyFormat = 'json_schema' } = { ...request, ...quirks };
  const shown = (schema: Schema) => quirks.tools?.shape(schema) ?? shownSchema(schema, quirks.schemas);
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
      function: tool,
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

/** Gemini's models from version 3 on. */
const CHECKS_SIGNATURES = /gemini-(?:[3-9]|\d\d)/;

interface Model {
  provider: string;
  model: string;
  images: Images;
}

type Images = ModelRequest['images'];

function messagesOf(messages: readonly PromptMessage[], quirks: VendorRules, model: Model): Message[] {
  const given: AttachedCalls = new Map();
  const fitId = fitIds(quirks, given);
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
    const attached = attachedTo(message, model, given);
    const each = openAiMessage(message, fitId, model.images);
    if (message.role === 'assistant') {
      if (quirks.mergeConsecutive && isSaid(last)) {
        each.content = typeof each.content === 'string' ? `${last.content}\n\n${each.content}` : last.content;
        sent.pop();
      }
      attach(each, message, given, quirks);
      Object.assign(each, attached.message, reasoningOf(message, quirks, { attached, ...model }));
    }
    sent.push(each);
  }
  return sent;
}

/** The ids of calls as they are sent. `attached`: what came with calls of this model; their ids go back as they came. */
function fitIds({ callIds: form }: ChatQuirks, attached: AttachedCalls): (id: string) => string {
  if (form === 'nine') return nineOf;
  if (form === 'forty') return (id) => fitCallId(id, FORTY);
  return (id) => attached.get(id)?.id ?? fitCallId(id, FORTY);
}

/** By the ids of the log. A call that was approved is made again with its id, and so with what came with it. */
type AttachedCalls = Map<string, AttachedCall>;

/** Only the model that attached it understands it. Adds what came with calls to `given`. */
function attachedTo(message: PromptMessage, { provider, model }: Model, given: AttachedCalls): Attached {
  if (message.role !== 'assistant' || !message.reasoning) return {};
  const { reasoning } = message;
  if (reasoning.provider !== provider || reasoning.model !== model) return {};
  const attached = attachedIn(reasoning.signature);
  for (const [id, parts] of Object.entries(attached.calls ?? {})) given.set(id, parts);
  return attached;
}

function attach(
  to: Message,
  { calls = [] }: Assistant,
  given: AttachedCalls,
  { unsigned }: VendorRules,
): void {
  if (!('tool_calls' in to)) return;
  const parts = calls.map(({ id }) => given.get(id));
  const isSigned = parts.some((each) => each?.call);
  for (const [index, sent] of (to.tool_calls ?? []).entries()) {
    // Of calls side by side, the vendor signs the first.
    Object.assign(sent, parts[index]?.call ?? (index === 0 && !isSigned && unsigned));
    if (sent.type === 'function') Object.assign(sent.function, parts[index]?.function);
  }
}

type Assistant = Extract<PromptMessage, { role: 'assistant' }>;

/** Without a setting, reasoning goes back in the field in which it came. */
function reasoningOf(
  { reasoning }: Assistant,
  { reasoningField, reasoningRequired }: ChatQuirks,
  { attached, provider, model }: Model & { attached: Attached },
): { [field in ThoughtField]?: string } {
  const field = reasoningField === undefined ? attached.field : reasoningField;
  if (!field) return {};
  const isOwn = reasoning?.provider === provider && reasoning.model === model;
  const text = isOwn ? reasoning.text.toWellFormed() : '';
  return text !== '' || reasoningRequired ? { [field]: text } : {};
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
