import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  EmbeddingModelV4,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from '@ai-sdk/provider';
import { guardedStream, type StreamWatch } from '../guard-stream.ts';
import {
  type ModelEvent,
  type ModelRequest,
  type Provider,
  STATELESS,
  type ResponseName,
} from '../provider.ts';
import { type ReplyLimitSettings, replyLimits } from '../reply-limits.ts';
import { NO_EXTRAS, type RequestExtras, givenOf, type Sampling } from '../request-settings.ts';
import { toolProblem } from '../fit-tools.ts';
import type { AiSdkModel, AiSdkEmbeddingModel } from '../ai-sdk-model.ts';
import { callOptions, type PartMetadata, traitsOf, signedReasoning, type Thought } from './prompt.ts';
import { type Embedder, guardedEmbedder } from '../embedder.ts';
import { NO_USAGE, type Usage } from '../../events/index.ts';
import { argsText, mintCallId } from '../call-text.ts';
import { kindOfEnd, type VendorEnd, vendorEnd } from '../stop-reasons.ts';
import { TroupeError } from '../../base/errors.ts';

interface AiSdkOptions {
  replyLimits?: ReplyLimitSettings | undefined;
  sampling?: Sampling | undefined;
  extras?: RequestExtras | undefined;
}

/** A language model of the AI SDK. Its vendor package makes the requests. */
export function createAiSdk(
  given: AiSdkModel,
  { sampling = {}, extras = NO_EXTRAS, ...options }: AiSdkOptions = {},
): Provider {
  const model = given as unknown as LanguageModelV4;
  const name = `ai-sdk.${model.provider.replace(/[^\w.-]/g, '_')}`.slice(0, 64);
  const traits = traitsOf(model);
  const { templateMarks, tools } = traits;
  const limits = replyLimits(options.replyLimits);

  async function* read(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    const asked: LanguageModelV4CallOptions = {
      ...callOptions(request, { provider: name, traits }),
      ...samplingOptions(sampling, request),
      headers: extras.headers,
      providerOptions: withOptions(traits.options, extras.body as PartMetadata),
      ...givenOf({ reasoning: extras.effort }),
      abortSignal: watch.signal,
    };
    try {
      const { stream } = await model.doStream(asked);
      watch.touch();
      yield* readParts(stream, request, name, watch);
    } catch (thrown) {
      throw vendorFailure(thrown);
    }
  }

  return {
    name,
    capabilities: {
      ...STATELESS,
      images: true,
      caching: traits.cacheMark ? 'breakpoints' : 'automatic',
      templateMarks,
    },
    toolProblem: (tool) => toolProblem(tool, tools),
    stream: guardedStream({ name, limits, secrets: extras.secrets, templateMarks, tools, read }),
  };
}

function samplingOptions(
  { stop, ...sampling }: Sampling,
  { trace }: ModelRequest,
): Partial<LanguageModelV4CallOptions> {
  return givenOf({
    ...sampling,
    stopSequences: trace.purpose === 'compaction' || !stop ? undefined : [...stop],
  });
}

function withOptions(known: PartMetadata, own: PartMetadata): PartMetadata {
  const merged = Object.entries(own).map(
    ([vendor, options]) => [vendor, { ...known[vendor], ...options }] as const,
  );
  return { ...known, ...Object.fromEntries(merged) };
}

/** An embedding model of the AI SDK. Its vendor package makes the requests. */
export function createAiSdkEmbedder(given: AiSdkEmbeddingModel): Embedder {
  const model = given as unknown as EmbeddingModelV4;
  return guardedEmbedder({
    name: `ai-sdk.${model.provider}`,
    model: model.modelId,
    maxInputs: async () => model.maxEmbeddingsPerCall,
    async read(values, abortSignal) {
      try {
        return (await model.doEmbed({ values, abortSignal })).embeddings;
      } catch (thrown) {
        throw vendorFailure(thrown);
      }
    },
  });
}

type Part = LanguageModelV4StreamPart;
type Finish = Extract<Part, { type: 'finish' }>;
type CallPart = Extract<Part, { type: 'tool-call' }>;
type TextPart = Extract<Part, { type: `text-${string}` }>;
type InputPart = Extract<Part, { type: 'tool-input-start' | 'tool-input-delta' }>;
type ThoughtPart = Extract<Part, { type: `reasoning-${'start' | 'delta' | 'end'}` }>;
type Watch = Pick<StreamWatch, 'touch' | 'meter'>;

/** Converts the parts of a stream to events. Whole reasoning and whole calls are yielded after the answer has finished. */
async function* readParts(
  parts: AsyncIterable<Part>,
  request: ModelRequest,
  provider: string,
  watch: Watch,
): AsyncGenerator<ModelEvent> {
  const answer = new Answer(watch.meter);
  try {
    for await (const part of parts) {
      watch.touch();
      yield* answer.add(part);
    }
  } catch (thrown) {
    // An error after the finish loses nothing of the answer.
    if (answer.finish === null) throw thrown;
  }
  yield* answer.end(request, provider);
}

const isText = (part: Part): part is TextPart => part.type.startsWith('text-');
const isThought = (part: Part): part is ThoughtPart => /^reasoning-(?:start|delta|end)$/.test(part.type);

/** A block of the answer while its parts arrive. */
interface Block {
  text: string;
  at: number;
  metadata: PartMetadata;
}

class Answer {
  readonly #meter: Watch['meter'];
  readonly #thoughts = new Map<string, Block>();
  /** Metadata of the text blocks. The log joins all of them to one text. */
  readonly #texts = new Map<string, PartMetadata>();
  readonly #calls: CallPart[] = [];
  /** Calls whose arguments arrived in pieces and are already counted: the tool's name and the arguments so far. */
  readonly #counted = new Map<string, { name: string; input: string }>();
  /** Id of the reasoning block whose piece was yielded last. */
  #thought: string | null = null;
  /** Visible parts so far, as in `Thought.at`. */
  #visible = 0;
  #spoke = false;
  /** The vendor called tools of its own. */
  #ranThere = false;
  #response: ResponseName = {};
  finish: Finish | null = null;

  constructor(meter: Watch['meter']) {
    this.#meter = meter;
  }

  /** Yields the events of one part of the stream. */
  *add(part: Part): Generator<ModelEvent> {
    if (isText(part)) {
      const delta = this.#addText(part);
      if (delta !== '') yield { type: 'text', delta };
    }
    if (isThought(part)) yield* this.#addThought(part);
    if (part.type === 'tool-input-start' || part.type === 'tool-input-delta') yield* this.#addInput(part);
    if (part.type === 'tool-call') this.#addCall(part);
    if (part.type === 'response-metadata')
      this.#response = { model: part.modelId ?? this.#response.model, id: part.id ?? this.#response.id };
    if (part.type === 'finish') this.finish = part;
    if (part.type === 'error') throw vendorFailure(part.error);
    // Ignored: files, sources, and calls of the vendor's own tools.
  }

  *#addInput(part: InputPart): Generator<ModelEvent> {
    if (part.type === 'tool-input-delta') {
      this.#meter.arguments(part.delta);
      const begun = this.#counted.get(part.id);
      if (!begun?.name || !part.delta) return;
      begun.input += part.delta;
      yield { type: 'calling', id: part.id, name: begun.name, delta: part.delta };
      return;
    }
    this.#meter.call();
    // The input of the vendor's own tools is counted, but yields no event.
    const name = part.providerExecuted ? '' : part.toolName;
    this.#counted.set(part.id, { name, input: '' });
    if (name) yield { type: 'calling', id: part.id, name, delta: '' };
  }

  #addText(part: TextPart): string {
    const delta = part.type === 'text-delta' ? part.delta : '';
    if (delta !== '' && !this.#spoke) {
      this.#spoke = true;
      this.#visible += 1;
    }
    if (delta !== '' || part.providerMetadata)
      this.#texts.set(part.id, this.#grown(this.#texts.get(part.id) ?? {}, part));
    return delta;
  }

  *#addThought(part: ThoughtPart): Generator<ModelEvent> {
    const block = this.#thoughts.get(part.id) ?? { text: '', at: this.#visible, metadata: {} };
    this.#thoughts.set(part.id, block);
    block.metadata = this.#grown(block.metadata, part);
    if (part.type !== 'reasoning-delta') return;
    this.#meter.reasoning(part.delta);
    block.text += part.delta;
    if (!part.delta) return;
    const isFurther = this.#thought !== null && this.#thought !== part.id;
    this.#thought = part.id;
    yield { type: 'thinking', delta: isFurther ? `\n\n${part.delta}` : part.delta };
  }

  #addCall(part: CallPart): void {
    this.#ranThere ||= part.providerExecuted === true;
    if (part.providerExecuted) return;
    if (!this.#counted.has(part.toolCallId)) {
      this.#meter.call();
      this.#meter.arguments(argsText(part.input));
    }
    this.#visible += 1;
    this.#grown({}, part);
    // Some packages give the input as an object, or only in pieces.
    const input = argsText(part.input) || (this.#counted.get(part.toolCallId)?.input ?? '');
    this.#calls.push({ ...part, input });
  }

  /** Adds the part's metadata to `known`: signatures may come in any part of a block. */
  #grown(known: PartMetadata, { providerMetadata }: { providerMetadata?: PartMetadata }): PartMetadata {
    if (!providerMetadata) return known;
    this.#meter.reasoning(JSON.stringify(providerMetadata));
    const grown = { ...known };
    for (const [vendor, fields] of Object.entries(providerMetadata))
      grown[vendor] = { ...grown[vendor], ...fields };
    return grown;
  }

  *end(request: ModelRequest, provider: string): Generator<ModelEvent> {
    if (this.finish === null) return;
    const { finishReason, usage } = this.finish;
    const { unified, raw } = finishReason;
    if (unified === 'interrupted') return;
    const end = endOf(unified, raw, this.#calls.length > 0);
    if ('failed' in end) return yield { type: 'failed', error: end.failed };
    const named = this.#calls.map((call, index) => ({
      ...call,
      id: call.toolCallId || mintCallId(request.trace, index),
    }));
    const reasoning = signedReasoning(this.#signed(named), { provider, model: request.model });
    if (reasoning) yield { type: 'reasoning', reasoning };
    for (const { id, toolName: name, input } of named)
      yield { type: 'call', call: { id, name, args: input } };
    // The vendor ran its own tools, so no call is left for us.
    const stop = end.stop === 'calls' && named.length === 0 && this.#ranThere ? 'end' : end.stop;
    yield { type: 'done', ...end, stop, usage: usageOf(usage), response: this.#response };
  }

  #signed(calls: readonly (CallPart & { id: string })[]) {
    const thoughts = [...this.#thoughts.values()].map(({ text, at, metadata }): Thought => ({
      text,
      ...(at > 0 && { at }),
      ...(Object.keys(metadata).length > 0 && { metadata }),
    }));
    const [text] = this.#texts.values();
    const ofCalls = calls.flatMap(({ id, providerMetadata }) =>
      providerMetadata ? [[id, providerMetadata]] : [],
    );
    return {
      // A block without text and signature is of no use to the vendor.
      thoughts: thoughts.filter((thought) => thought.text !== '' || thought.metadata),
      ...(this.#texts.size === 1 && text && Object.keys(text).length > 0 && { text }),
      calls: Object.fromEntries(ofCalls) as Record<string, PartMetadata>,
    };
  }
}

/** Packages report an end that they do not know as `other`, and some report an unreadable call as an error. */
function endOf(unified: string, raw: string | undefined, called: boolean): VendorEnd {
  const isTold = unified === 'other' || unified === 'unknown' || kindOfEnd(raw) === 'malformed';
  if (isTold && raw) return vendorEnd(raw, called);
  if (unified !== 'error') return vendorEnd(unified, called);
  const why = `the vendor ended with an error${raw ? ` (${raw})` : ''}`;
  return vendorEnd('error', called, why);
}

function usageOf(usage: LanguageModelV4Usage | undefined): Usage {
  const { inputTokens: input, outputTokens: output } = usage ?? {};
  return {
    ...NO_USAGE,
    input: input?.total ?? 0,
    cacheRead: input?.cacheRead ?? 0,
    cacheWrite: input?.cacheWrite ?? 0,
    output: output?.total ?? 0,
    reasoning: output?.reasoning ?? 0,
  };
}

/** Errors of the AI SDK itself, by their names. Errors of calls have a status instead. */
const STATUS: Readonly<Record<string, number>> = {
  AI_LoadAPIKeyError: 401,
  AI_LoadSettingError: 401,
  AI_NoSuchModelError: 404,
  AI_UnsupportedFunctionalityError: 400,
  AI_InvalidPromptError: 400,
  AI_InvalidArgumentError: 400,
};
const UNREADABLE = ['AI_JSONParseError', 'AI_TypeValidationError', 'AI_InvalidResponseDataError'];

type Fields = Record<string, unknown>;

/**
 * An error of the AI SDK in the form of a vendor's: `status`, `headers`, and the answer's body as `error`. It is read by its
 * shape: a program may have several versions of the AI SDK's packages.
 */
function vendorFailure(thrown: unknown): unknown {
  if (thrown instanceof TroupeError || !isRecord(thrown)) return thrown;
  const { statusCode, responseHeaders, data, cause } = thrown;
  const name = String(thrown['name']);
  if (thrown instanceof Error && !name.startsWith('AI_')) return thrown;
  const said = UNREADABLE.includes(name)
    ? errorIn(thrown['value'])
    : (bodyOf(thrown) ?? data ?? withoutMessage(thrown));
  if (said === undefined)
    return new TroupeError('provider_invalid_reply', messageOf(thrown), {}, { cause: thrown });
  // A successful answer that could not be read to its end has the status 200.
  const status = typeof statusCode === 'number' && statusCode >= 400 ? statusCode : STATUS[name];
  return Object.assign(new Error(messageOf(thrown), { cause }), {
    ...(status !== undefined && { status }),
    ...(isRecord(responseHeaders) && { headers: new Headers(responseHeaders as Record<string, string>) }),
    error: said,
  });
}

/** Errors within a stream are plain objects, and hold codes of their own. */
function withoutMessage(thrown: Fields): Fields {
  return thrown instanceof Error ? {} : thrown;
}

/** A vendor's error report in a form that the AI SDK does not know. */
function errorIn(value: unknown): Fields | undefined {
  return isRecord(value) && isRecord(value['error']) ? value : undefined;
}

function bodyOf({ responseBody }: Fields): unknown {
  if (typeof responseBody !== 'string' || !/^\s*[{[]/.test(responseBody)) return undefined;
  try {
    return JSON.parse(responseBody);
  } catch {
    return undefined; // The text is itself the message.
  }
}

/** A body that is not JSON tells more than the name of its status. */
function messageOf(error: Fields): string {
  const { message, responseBody } = error;
  if (typeof responseBody === 'string' && responseBody !== '' && bodyOf(error) === undefined)
    return responseBody;
  return typeof message === 'string' && message !== '' ? message : JSON.stringify(error);
}

function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
}
