import type OpenAI from 'openai';
import { guardedStream, type StreamWatch } from '../guard-stream.ts';
import { type ModelEvent, type ModelRequest, type Provider, STATELESS } from '../provider.ts';
import { type ReplyLimitSettings, replyLimits, type ReplyMeter } from '../reply-limits.ts';
import { serverOf } from '../vendor-fetch.ts';
import { openAiClient } from './client.ts';
import { quirksOf, toolRules, type ChatQuirks, NOT_REASONING, type VendorRules } from '../quirks.ts';
import { toolProblem } from '../fit-tools.ts';
import { NO_EXTRAS, type RequestExtras, givenOf, type Sampling } from '../request-settings.ts';
import type { PromptMessage, Reasoning, Usage } from '../../events/index.ts';
import {
  argsText,
  fitArgs,
  fitCacheKey,
  fitCallId,
  fitToolName,
  mintCallId,
  parseArgs,
  shownImages,
} from '../call-text.ts';
import { shownSchema } from '../plain-schema.ts';
import { classifyFailure } from '../classify-failure.ts';
import { vendorEnd } from '../stop-reasons.ts';

interface OpenAiOptions {
  /** Default https://api.openai.com/v1. */
  baseUrl?: string;
  apiKey: string;
  /** Limits of the size and duration of an answer. */
  replyLimits?: ReplyLimitSettings;
  sampling?: Pick<Sampling, 'temperature' | 'topP'>;
  extras?: RequestExtras;
}

const NAME = 'openai';
/** Special tokens of OpenAI's models. */
const MARKS = ['tokens'] as const;

/** OpenAI's Responses API. Nothing is stored there, because the log is the memory. */
export function createOpenAi(options: OpenAiOptions): Provider {
  const { baseUrl = 'https://api.openai.com/v1', apiKey, sampling = {}, extras = NO_EXTRAS } = options;
  const sampled = givenOf({
    temperature: sampling.temperature,
    top_p: sampling.topP,
    reasoning: reasoningSetting(extras),
  });
  const quirks = quirksOf(baseUrl);
  const tools = toolRules(quirks);
  const limits = replyLimits(options.replyLimits);
  const client = openAiClient({ apiKey, baseUrl, limits, headers: extras.headers });

  async function* read(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    const body = { ...responsesBody(request, NAME, quirks), ...extras.body, ...sampled };
    const events = await client.stream<ResponseEvent>('/responses', body, watch.signal);
    watch.touch();
    yield* readResponseEvents(events, { request, provider: NAME, callIds: quirks.callIds }, watch);
  }

  return {
    name: NAME,
    capabilities: { ...STATELESS, interleavedSystem: true, images: true, templateMarks: MARKS },
    server: serverOf(baseUrl),
    ...(tools && { toolProblem: (tool) => toolProblem(tool, tools) }),
    stream: guardedStream({
      name: NAME,
      limits,
      secrets: [apiKey, ...extras.secrets],
      templateMarks: MARKS,
      tools,
      read,
    }),
  };
}

function reasoningSetting({ effort, body }: RequestExtras): object | undefined {
  return effort && { effort, ...(body['reasoning'] as object) };
}

type Body = OpenAI.Responses.ResponseCreateParamsStreaming;
type Item = OpenAI.Responses.ResponseInputItem;
type Phase = OpenAI.Responses.EasyInputMessage['phase'];

/** Parts of a step that only the same model can use, stored as JSON in the signature of its reasoning. */
interface SignedStep {
  /** Encrypted reasoning items, each with the number of visible items (text, calls) before it. */
  items: { at: number; item: OpenAI.Responses.ResponseReasoningItem }[];
  /** Phase of the step's text, which newer models want back. */
  phase?: Phase;
  /** What was attached to calls, by their ids. */
  calls?: Record<string, { call_id?: string }>;
}

/** OpenAI: "Expected a string with maximum length 64". */
const SIXTY_FOUR = /^[\s\S]{1,64}$/;
/** The fields of a call itself. Any other field was attached to it. */
const OF_CALLS = new Set(['type', 'id', 'call_id', 'name', 'arguments', 'status']);

/** The request body. Nothing is stored with the vendor, so every request carries the whole prompt. */
export function responsesBody(
  request: ModelRequest,
  provider: string,
  { schemas, callIds, tools }: Pick<VendorRules, 'schemas' | 'callIds' | 'tools'>,
): Body {
  const given = new Map<string, string>();
  const fitId = (id: string) =>
    (callIds === 'forty' ? undefined : given.get(id)) ?? fitCallId(id, SIXTY_FOUR);
  const shown = (schema: Record<string, unknown>) => tools?.shape(schema) ?? shownSchema(schema, schemas);
  const { model, messages, replySchema } = request;
  const begin = messages.findIndex(({ role }) => role !== 'system');
  const leading = messages.slice(0, begin < 0 ? messages.length : begin);
  const body: Body = {
    model,
    input: messages.slice(leading.length).flatMap((message) => {
      const signed = isOwn(message, model, provider);
      for (const [id, { call_id: own }] of Object.entries(signed?.calls ?? {})) if (own) given.set(id, own);
      return itemsOf(message, signed, { images: request.images, fitId });
    }),
    stream: true,
    store: false,
    max_output_tokens: request.maxOutputTokens,
    prompt_cache_key: fitCacheKey(request.cacheKey),
  };
  if (leading.length > 0)
    body.instructions = leading.map(({ content }) => content.toWellFormed()).join('\n\n');
  if (!NOT_REASONING.test(model)) body.include = ['reasoning.encrypted_content'];
  if (request.tools.length > 0) {
    // Strict mode demands more of a schema than tools need to fulfil.
    body.tools = request.tools.map((tool) => ({
      type: 'function',
      ...tool,
      strict: false,
    }));
  }
  if (replySchema) {
    body.text = { format: { type: 'json_schema', name: 'reply', schema: shown(replySchema), strict: false } };
  }
  return body;
}

/** `type` is set on messages too: other servers than OpenAI's need it to tell items apart. */
function itemsOf(
  message: PromptMessage,
  signed: SignedStep | null,
  { images, fitId }: { images: ModelRequest['images']; fitId: (id: string) => string },
): Item[] {
  const content = message.content.toWellFormed();
  switch (message.role) {
    case 'system':
      return [{ type: 'message', role: 'developer', content }];
    case 'user': {
      const shown = shownImages(message.images, images).map(({ url }) => ({
        type: 'input_image' as const,
        image_url: url,
        detail: 'auto' as const,
      }));
      return [
        {
          type: 'message',
          role: 'user',
          content: shown.length > 0 ? [...shown, { type: 'input_text', text: content }] : content,
        },
      ];
    }
    case 'tool':
      return [{ type: 'function_call_output', call_id: fitId(message.call), output: content }];
    case 'assistant': {
      const visible: Item[] = (message.calls ?? []).map((call) => ({
        ...signed?.calls?.[call.id],
        type: 'function_call',
        call_id: fitId(call.id),
        name: fitToolName(call.name),
        arguments: fitArgs(call.args),
      }));
      if (content !== '') {
        const phase = signed?.phase;
        visible.unshift({ type: 'message', role: 'assistant', content, ...(phase ? { phase } : {}) });
      }
      return signed ? weave(visible, signed.items) : visible;
    }
  }
}

/** Puts each reasoning item directly before the item that it led to. */
function weave(visible: readonly Item[], items: SignedStep['items']): Item[] {
  const woven: Item[] = [];
  for (const [index, each] of visible.entries()) {
    woven.push(...items.filter(({ at }) => at === index).map(({ item }) => item), each);
  }
  return woven;
}

/** The signed step if this model made it: only that model can read its encrypted reasoning. */
function isOwn(message: PromptMessage, model: string, provider: string): SignedStep | null {
  if (message.role !== 'assistant' || !message.reasoning) return null;
  const { reasoning } = message;
  return reasoning.provider === provider && reasoning.model === model ? signedStep(reasoning) : null;
}

/** Null if the signature is not ours: an imported log may have others. */
function signedStep({ signature = '' }: Reasoning): SignedStep | null {
  const step = parseArgs(signature) as Partial<SignedStep> | null;
  return Array.isArray(step?.items) ? (step as SignedStep) : null;
}

type ResponseEvent = OpenAI.Responses.ResponseStreamEvent;
type OutputItem = OpenAI.Responses.ResponseOutputItem;
type Response = OpenAI.Responses.Response;
type FunctionCall = Extract<OutputItem, { type: 'function_call' }>;

/**
 * Converts stream events to model events. Reasoning and calls are yielded whole, once the response is complete. A failed or
 * incomplete response arrives as an event of the stream, not as an exception.
 */
async function* readResponseEvents(
  events: AsyncIterable<ResponseEvent | Response>,
  reading: Reading,
  { touch, meter }: Pick<StreamWatch, 'touch' | 'meter'>,
): AsyncGenerator<ModelEvent> {
  const items: OutputItem[] = [];
  const pieces = new ResponsePieces();
  const words = new ResponseWords();
  for await (const event of events) {
    touch();
    if (isWhole(event)) {
      yield* ended(event);
      return;
    }
    yield* pieces.read(event);
    if (!isRead(event)) continue;
    switch (event.type) {
      case 'response.output_text.delta':
      case 'response.output_text.done':
      case 'response.refusal.delta':
      case 'response.refusal.done':
        yield* words.read(event);
        break;
      case 'response.output_item.done':
        yield* words.item(event.item);
        if (isItem(event.item)) items.push(measured(event.item, meter));
        break;
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        yield* ended(event.response);
        return;
      case 'error':
        yield failure(event);
        return;
    }
  }

  function* ended(response: Response): Generator<ModelEvent> {
    if (response.status === 'failed') return yield failure(response.error);
    for (const item of (response.output ?? []).filter(isItem))
      if (!items.some((known) => isSame(known, item))) items.push(measured(item, meter));
    yield* words.rest(response);
    yield* finish(items, response, { refused: words.refused, pieces }, reading);
  }
}

/** Some servers send null in place of an item that they dropped. */
function isItem(item: OutputItem | null): item is OutputItem {
  return typeof item === 'object' && item !== null;
}

/** Whether this is a whole answer, from a server that does not stream. */
function isWhole(event: ResponseEvent | Response): event is Response {
  return 'output' in event && Array.isArray(event.output);
}

function isSame(known: OutputItem, item: OutputItem): boolean {
  if (known.type !== item.type) return false;
  if (known.type === 'function_call') return known.call_id === (item as FunctionCall).call_id;
  return known.id === item.id;
}

/**
 * Counts the part of an item that is kept until the end. The text of a message was already streamed; other kinds of items are
 * not read.
 */
function measured(item: OutputItem, meter: ReplyMeter): OutputItem {
  if (item.type === 'message') {
    meter.reasoning(item.phase);
    return { ...item, content: [] };
  }
  if (item.type === 'function_call') {
    meter.call();
    meter.arguments(argsText(item.arguments));
  } else {
    meter.reasoning(JSON.stringify(item));
  }
  return item;
}

/** The events that are read. All others repeat finished items, or belong to tools that Troupe does not use. */
const READ = [
  'response.output_text.delta',
  'response.output_text.done',
  'response.refusal.delta',
  'response.refusal.done',
  'response.output_item.done',
  'response.completed',
  'response.incomplete',
  'response.failed',
  'error',
] as const;

type Read = Extract<ResponseEvent, { type: (typeof READ)[number] }>;

function isRead(event: ResponseEvent): event is Read {
  return READ.some((type) => type === event.type);
}

interface Reading extends Pick<ChatQuirks, 'callIds'> {
  request: ModelRequest;
  provider: string;
}

function* finish(
  items: readonly OutputItem[],
  { status, incomplete_details: incomplete, usage, model, id }: Response,
  { refused, pieces }: { refused: boolean; pieces: ResponsePieces },
  { request, provider, callIds }: Reading,
): Generator<ModelEvent> {
  const calls = items.filter((item): item is FunctionCall => item.type === 'function_call');
  const isCut = status === 'incomplete' || calls.at(-1)?.status === 'incomplete';
  const end = vendorEnd(incomplete?.reason ?? endWord(status), calls.length > 0);
  if ('failed' in end) return yield { type: 'failed', error: end.failed };
  const reasoning = reasoningOf(items, callIds !== 'forty');
  if (reasoning) yield { type: 'reasoning', reasoning: { ...reasoning, provider, model: request.model } };
  for (const [i, call] of calls.entries()) {
    const id = call.call_id || mintCallId(request.trace, i);
    yield {
      type: 'call',
      call: { id, name: call.name, args: argsText(call.arguments) || pieces.written(call) },
    };
  }
  const stop = refused || end.stop === 'refusal' ? 'refusal' : isCut ? 'length' : end.stop;
  yield { type: 'done', ...end, stop, usage: usageOf(usage), response: { model, id } };
}

/** The word for an end without a reason. Servers that only resemble OpenAI's omit the status. */
function endWord(status: string | undefined): string {
  return status === 'incomplete' ? 'length' : status === 'cancelled' ? status : 'completed';
}

function reasoningOf(
  items: readonly OutputItem[],
  keepsAll: boolean,
): { text: string; signature?: string } | null {
  const texts: string[] = [];
  const signed: SignedStep = { items: [] };
  const calls: NonNullable<SignedStep['calls']> = {};
  let at = 0;
  for (const item of items) {
    // The log joins several messages to one text.
    if (item.type === 'function_call' || (item.type === 'message' && at === 0)) at += 1;
    if (item.type === 'message' && item.phase) signed.phase = item.phase;
    if (item.type === 'function_call') Object.assign(calls, attachedTo(item, keepsAll));
    if (item.type !== 'reasoning') continue;
    texts.push(...textsOf(item));
    // The status belongs to the response and is not sent back.
    const { status: _, ...kept } = item;
    if (isSentBack(item, keepsAll)) signed.items.push({ at, item: kept });
  }
  const text = texts.join('\n\n');
  if (Object.keys(calls).length > 0) signed.calls = calls;
  if (signed.items.length > 0 || signed.phase || signed.calls)
    return { text, signature: JSON.stringify(signed) };
  return text === '' ? null : { text };
}

/**
 * OpenAI would look up an unencrypted item by its id, and fail, because it has stored nothing. Servers of open models read the
 * item's content instead.
 */
function isSentBack(
  { encrypted_content, content }: OpenAI.Responses.ResponseReasoningItem,
  keepsAll: boolean,
): boolean {
  return Boolean(encrypted_content) || (keepsAll && Boolean(content?.length));
}

function textsOf({ summary, content }: OpenAI.Responses.ResponseReasoningItem): string[] {
  return [...(summary ?? []), ...(content ?? [])].flatMap((part) => part?.text ?? []);
}

/** The fields of a call besides its own, by its id in the log, which truncates a long id. */
function attachedTo(call: FunctionCall, keepsIds: boolean): NonNullable<SignedStep['calls']> {
  const { call_id: id } = call;
  const attached = Object.entries(call).filter(([name, value]) => !OF_CALLS.has(name) && value !== null);
  if (keepsIds && !SIXTY_FOUR.test(id)) attached.push(['call_id', id]);
  return attached.length === 0 ? {} : { [String(id).slice(0, 256)]: Object.fromEntries(attached) };
}

function failure(error: { code: string | null; message: string } | null): ModelEvent {
  const words = error?.code ? [error.code.toLowerCase()] : [];
  const message = error?.message || 'the response failed';
  const vendor = { words, message, connection: false };
  return { type: 'failed', error: classifyFailure(vendor, { opened: true, now: Date.now() }) };
}

/** Input includes cached tokens; output includes reasoning. */
function usageOf(usage: Response['usage']): Usage {
  return {
    input: usage?.input_tokens ?? 0,
    output: usage?.output_tokens ?? 0,
    cacheRead: usage?.input_tokens_details?.cached_tokens ?? 0,
    cacheWrite: usage?.input_tokens_details?.cache_write_tokens ?? 0,
    reasoning: usage?.output_tokens_details?.reasoning_tokens ?? 0,
  };
}

/** Yields pieces of reasoning and calls. The items come whole later, but from some servers only the pieces hold the arguments. */
class ResponsePieces {
  /** Calls that have begun, by the id of their item. */
  readonly #calls = new Map<string, { id: string; name: string; args: string }>();
  /** The part of the reasoning whose piece was yielded last. */
  #thought: string | null = null;

  *read(event: OpenAI.Responses.ResponseStreamEvent): Generator<ModelEvent> {
    if (event.type === 'response.output_item.added') yield* this.#begin(event.item);
    if (event.type === 'response.function_call_arguments.delta') {
      const call = this.#calls.get(event.item_id);
      if (call && event.delta) yield* this.#write(call, event.delta);
    }
    if (event.type === 'response.function_call_arguments.done') {
      const call = this.#calls.get(event.item_id);
      if (call && call.args === '') yield* this.#write(call, event.arguments);
    }
    if (event.type === 'response.reasoning_summary_text.delta')
      yield* this.#think(`${event.item_id} s${event.summary_index}`, event.delta);
    if (event.type === 'response.reasoning_text.delta')
      yield* this.#think(`${event.item_id} c${event.content_index}`, event.delta);
  }

  *#begin(item: OpenAI.Responses.ResponseOutputItem): Generator<ModelEvent> {
    if (item?.type !== 'function_call' || !item.id || this.#calls.has(item.id)) return;
    const call = { id: item.call_id, name: item.name, args: '' };
    this.#calls.set(item.id, call);
    yield* this.#write(call, item.arguments);
  }

  /** Some servers send an object instead of text. */
  *#write(call: { id: string; name: string; args: string }, given: unknown): Generator<ModelEvent> {
    const delta = typeof given === 'string' ? given : argsText(given);
    call.args += delta;
    yield { type: 'calling', id: call.id, name: call.name, delta };
  }

  /** The arguments that arrived in pieces for this call. */
  written({ id = '' }: { id?: string }): string {
    return this.#calls.get(id)?.args ?? '';
  }

  *#think(part: string, delta: string): Generator<ModelEvent> {
    if (!delta) return;
    const isFurther = this.#thought !== null && this.#thought !== part;
    this.#thought = part;
    yield { type: 'thinking', delta: isFurther ? `\n\n${delta}` : delta };
  }
}

type TextEvent = Extract<
  OpenAI.Responses.ResponseStreamEvent,
  { type: `response.${'output_text' | 'refusal'}.${'delta' | 'done'}` }
>;
/** Yields the text of an answer. Servers send it in pieces, at the end of a part or an item, or only in the whole response. */
class ResponseWords {
  #said = '';
  /** Positions in the yielded text at which the current part and item begin. */
  #part = 0;
  #item = 0;
  refused = false;

  *read(event: TextEvent): Generator<ModelEvent> {
    switch (event.type) {
      case 'response.refusal.delta':
        this.refused = true;
        return yield* this.#say(event.delta);
      case 'response.output_text.delta':
        return yield* this.#say(event.delta);
      case 'response.refusal.done':
        this.refused = true;
        yield* this.#sayRest(event.refusal, this.#part);
        break;
      case 'response.output_text.done':
        yield* this.#sayRest(event.text, this.#part);
    }
    this.#part = this.#said.length;
  }

  *item(item: OutputItem): Generator<ModelEvent> {
    if (item?.type !== 'message') return;
    yield* this.#sayRest(this.#textOf([item]), this.#item);
    this.#part = this.#item = this.#said.length;
  }

  *rest({ output }: Pick<OpenAI.Responses.Response, 'output'>): Generator<ModelEvent> {
    yield* this.#sayRest(this.#textOf(output ?? []), 0);
  }

  *#say(delta: unknown): Generator<ModelEvent> {
    if (typeof delta !== 'string' || delta === '') return;
    this.#said += delta;
    yield { type: 'text', delta };
  }

  *#sayRest(whole: unknown, from: number): Generator<ModelEvent> {
    if (typeof whole !== 'string') return;
    const said = this.#said.slice(from);
    if (whole.length > said.length && whole.startsWith(said)) yield* this.#say(whole.slice(said.length));
  }

  #textOf(items: readonly OutputItem[]): string {
    const all = items.flatMap((item) => (item?.type === 'message' ? (item.content ?? []) : []));
    const parts = all.filter(Boolean);
    this.refused ||= parts.some(({ type }) => type === 'refusal');
    return parts.map((part) => (part.type === 'refusal' ? part.refusal : (part.text ?? ''))).join('');
  }
}
