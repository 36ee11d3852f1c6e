import type OpenAI from 'openai';
import { createHash } from 'node:crypto';
import type { PromptMessage } from '../../events/index.ts';
import { fitArgs, fitCacheKey, fitCallId, fitToolName, shownImages, parseArgs } from '../call-text.ts';
import { appendSchema, shownSchema } from '../plain-schema.ts';
import type { ModelRequest } from '../provider.ts';
import type { ChatQuirks, VendorRules } from '../quirks.ts';
import type { ReplyMeter } from '../reply-limits.ts';

type Body = OpenAI.ChatCompletionCreateParamsStreaming & { session_id?: string };
type Message = OpenAI.ChatCompletionMessageParam & { [field in ThoughtField]?: string };

type Schema = Record<string, unknown>;

/**
 * Azure and OpenAI: "Expected a string with maximum length 40". All other servers accept ids of this length too, even of other
 * models.
 */
const FORTY = /^[\s\S]{1,40}$/;
const NINE = /^[A-Za-z0-9]{9}$/;
/** Text for vendors that require an assistant message between a tool result and a user message. */
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

/** Gemini models from version 3 on. */
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

/** Fits the ids of calls to the server. `attached`: what came with this model's calls; their original ids go back unchanged. */
function fitIds({ callIds: form }: ChatQuirks, attached: AttachedCalls): (id: string) => string {
  if (form === 'nine') return nineOf;
  if (form === 'forty') return (id) => fitCallId(id, FORTY);
  return (id) => attached.get(id)?.id ?? fitCallId(id, FORTY);
}

/** By the ids in the log. An approved call keeps its id when it is made again, and so finds what came with it. */
type AttachedCalls = Map<string, AttachedCall>;

/** What the message's model attached, if the same model is asked. Adds the parts of calls to `given`. */
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
    // The vendor signs only the first of parallel calls.
    Object.assign(sent, parts[index]?.call ?? (index === 0 && !isSigned && unsigned));
    if (sent.type === 'function') Object.assign(sent.function, parts[index]?.function);
  }
}

type Assistant = Extract<PromptMessage, { role: 'assistant' }>;

/** Without the setting, reasoning goes back in the field in which it came. */
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

type Fields = Record<string, unknown>;

/** The fields in which answers carry reasoning. Servers use one of them, and some send the first two at once. */
const THOUGHT_FIELDS = ['reasoning_content', 'reasoning', 'reasoning_text'] as const;
type ThoughtField = (typeof THOUGHT_FIELDS)[number];

/**
 * Fields that servers attach to a message and want back with it.
 * `extra_content`: Gemini, https://ai.google.dev/gemini-api/docs/openai. `reasoning_details`: OpenRouter and MiniMax,
 * https://openrouter.ai/docs/use-cases/reasoning-tokens. `provider_specific_fields`, `thinking_blocks`: LiteLLM,
 * https://docs.litellm.ai/docs/reasoning_content. `reasoning_opaque`: GitHub Copilot.
 */
const OF_MESSAGES = [
  'extra_content',
  'reasoning_details',
  'provider_specific_fields',
  'thinking_blocks',
  'reasoning_opaque',
  'reasoning_signature',
  'thought_signature',
] as const;
/** The fields of a call itself. Any other field was attached to it, such as thought signatures of Gemini and LiteLLM. */
const OF_CALLS = new Set([
  'index',
  'id',
  'type',
  'function',
  'custom',
  'name',
  'arguments',
  'input',
  'parameters',
]);
const OF_FUNCTIONS = new Set(['name', 'arguments', 'input', 'parameters', 'parsed_arguments', 'description']);
/** The log truncates longer ids. */
const LOGGED_CHARACTERS = 256;
/** All servers accept ids up to this length. */
const COMMON_CHARACTERS = 40;
const PREFIX = 'chat:';

/** What was attached to an answer, as it is kept in the signature of the answer's reasoning. */
interface Attached {
  field?: ThoughtField;
  message?: Fields;
  /** By the id of the call in the log. */
  calls?: Record<string, AttachedCall>;
}

interface AttachedCall {
  /** The server's own id, if other servers may refuse it, or the log has only its beginning. */
  id?: string;
  call?: Fields;
  function?: Fields;
}

/** Empty unless the signature is in this format: an imported log may have others. */
function attachedIn(signature = ''): Attached {
  if (!signature.startsWith(PREFIX)) return {};
  return (parseArgs(signature.slice(PREFIX.length)) ?? {}) as Attached;
}

/** The reasoning in a delta, and the field that holds it. */
export function thoughtIn(delta: Fields): { field?: ThoughtField; text: string } {
  for (const field of THOUGHT_FIELDS) {
    const text = delta[field];
    if (typeof text === 'string' && text !== '') return { field, text };
  }
  return { text: '' };
}

interface CallParts {
  id: string;
  /** Number of calls that had begun before this one. */
  at: number;
  call: Fields;
  function: Fields;
}

/** Collects what the deltas of an answer attach. */
export class Attachments {
  readonly #meter: ReplyMeter;
  readonly #message: Fields = {};
  readonly #calls: CallParts[] = [];
  #begun = 0;
  #field: ThoughtField | undefined;

  constructor(meter: ReplyMeter) {
    this.#meter = meter;
  }

  get isEmpty(): boolean {
    return this.#calls.length === 0 && Object.keys(this.#message).length === 0;
  }

  /** Reads one delta. `field`: the field of its reasoning. */
  add(delta: Fields, field: ThoughtField | undefined): void {
    this.#field ??= field;
    for (const name of OF_MESSAGES) {
      const given = delta[name];
      if (given === undefined || given === null) continue;
      this.#meter.reasoning(JSON.stringify(given));
      this.#message[name] = merged(this.#message[name], given);
    }
    const { tool_calls: calls } = delta;
    if (Array.isArray(calls)) for (const call of calls) if (isFields(call)) this.#addCall(call);
  }

  #addCall(given: Fields): void {
    const made = isFields(given['function']) ? given['function'] : {};
    const id = typeof given['id'] === 'string' ? given['id'] : '';
    if (made['name']) this.#begun += 1;
    const parts = { call: othersIn(given, OF_CALLS), function: othersIn(made, OF_FUNCTIONS) };
    const isPlain = parts.call === null && parts.function === null;
    if (isPlain && id.length <= COMMON_CHARACTERS) return;
    this.#meter.reasoning(id + JSON.stringify(parts));
    const at = Math.max(0, this.#begun - 1);
    const known = this.#calls.find((each) => (id === '' ? each.at === at : each.id === id));
    const entry = known ?? { id, at, call: {}, function: {} };
    if (!known) this.#calls.push(entry);
    entry.call = merged(entry.call, parts.call ?? {}) as Fields;
    entry.function = merged(entry.function, parts.function ?? {}) as Fields;
  }

  /** Null if nothing was attached. `given`: the ids of the calls, in order. */
  signature(given: readonly string[]): string | null {
    const ids = given.map((id) => id.slice(0, LOGGED_CHARACTERS));
    const attached: Attached = {};
    if (this.#field) attached.field = this.#field;
    if (Object.keys(this.#message).length > 0) attached.message = this.#message;
    const calls = this.#calls.flatMap(({ id, at, ...parts }) => {
      const own = id.slice(0, LOGGED_CHARACTERS);
      const logged = ids.includes(own) ? own : ids[at];
      if (logged === undefined) return [];
      const filled = Object.entries(parts).filter(([, fields]) => Object.keys(fields).length > 0);
      const isLong = id.length > COMMON_CHARACTERS && logged === own;
      return [[logged, { ...(isLong && { id }), ...Object.fromEntries(filled) }] as const];
    });
    if (calls.length > 0) attached.calls = Object.fromEntries(calls);
    return Object.keys(attached).length === 0 ? null : PREFIX + JSON.stringify(attached);
  }
}

function othersIn(given: Fields, known: ReadonlySet<string>): Fields | null {
  const others = Object.entries(given).filter(([name, value]) => !known.has(name) && value !== null);
  return others.length === 0 ? null : Object.fromEntries(others);
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Joins two values: lists grow, objects are merged, anything else is replaced. */
function merged(known: unknown, given: unknown): unknown {
  if (Array.isArray(given)) return Array.isArray(known) ? joinedLists(known, given) : joinedLists([], given);
  if (!isFields(known) || !isFields(given)) return given;
  const both = { ...known };
  for (const [name, value] of Object.entries(given)) {
    const isList = Array.isArray(value) || Array.isArray(both[name]);
    both[name] = isList || !Object.hasOwn(both, name) ? value : merged(both[name], value);
  }
  return both;
}

/** Fields whose text arrives in pieces, one entry for each piece. */
const GROWING = ['text', 'summary', 'thinking'] as const;

/** Appends entries in order. A piece of the last entry is joined to it. */
function joinedLists(known: unknown[], given: readonly unknown[]): unknown[] {
  for (const entry of given) {
    const last = known.at(-1);
    if (isFields(last) && isFields(entry) && isPieceOf(last, entry))
      known[known.length - 1] = grown(last, entry);
    else known.push(entry);
  }
  return known;
}

/** Whether `entry` continues `last`. A signature or encrypted data ends an entry. */
function isPieceOf(last: Fields, entry: Fields): boolean {
  if (last['signature'] || 'data' in last || 'data' in entry || last['type'] !== entry['type']) return false;
  const isSame = (name: string) => !last[name] || !entry[name] || last[name] === entry[name];
  return isSame('index') && isSame('id') && GROWING.some((name) => name in last && name in entry);
}

function grown(last: Fields, entry: Fields): Fields {
  const both = { ...last };
  for (const [name, value] of Object.entries(entry)) {
    const isText = GROWING.some((each) => each === name) && typeof both[name] === 'string';
    if (isText) both[name] = `${both[name] as string}${typeof value === 'string' ? value : ''}`;
    else if (value !== null || !(name in both)) both[name] = value;
  }
  return both;
}
