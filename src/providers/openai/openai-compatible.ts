import type OpenAI from 'openai';
import { serverOf } from '../vendor-fetch.ts';
import { guardedStream, type StreamWatch } from '../guard-stream.ts';
import { openAiClient } from './client.ts';
import { openAiBody } from './chat-messages.ts';
import {
  type ModelEvent,
  type ModelRequest,
  type Provider,
  type ResponseName,
  STATELESS,
} from '../provider.ts';
import { replyLimits, type ReplyLimitSettings, type ReplyMeter } from '../reply-limits.ts';
import { type ChatQuirks, quirksOf, toolRules, type VendorRules } from './quirks.ts';
import { toolProblem } from '../fit-tools.ts';
import { NO_EXTRAS, type RequestExtras } from '../request-settings.ts';
import { givenOf, type Sampling } from '../sampling.ts';
import { NO_USAGE, type Usage } from '../../events/index.ts';
import { Attachments, thoughtIn } from './attachments.ts';
import { kindOfEnd, vendorEnd } from '../stop-reasons.ts';
import { CallAssembly } from './call-assembly.ts';

interface OpenAiCompatibleOptions {
  name?: string;
  baseUrl: string;
  apiKey: string;
  /** Limits of the size and duration of an answer. */
  replyLimits?: ReplyLimitSettings;
  /** Overrides what is known of the host. */
  quirks?: VendorRules;
  sampling?: Sampling;
  extras?: RequestExtras;
}

/** Servers such as llama.cpp and vLLM apply the model's template to the text of messages, of whichever family it is. */
const MARKS = ['tokens', 'templates'] as const;

/** Any server with OpenAI's chat completions API: OpenAI, vLLM, Ollama, OpenRouter and others. */
export function createOpenAiCompatible(options: OpenAiCompatibleOptions): Provider {
  const { name = 'openai-compatible', baseUrl, apiKey, extras = NO_EXTRAS } = options;
  const quirks = quirksOf(baseUrl, options.quirks);
  const tools = toolRules(quirks);
  const limits = replyLimits(options.replyLimits);
  const client = openAiClient({ apiKey, baseUrl, limits, headers: extras.headers });

  async function* read(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    const sampled = chatSampling(options.sampling ?? {}, request, quirks);
    const body = {
      ...openAiBody(request, quirks, name),
      ...sampled,
      ...givenOf({ reasoning_effort: extras.effort }),
      ...extras.body,
    };
    const chunks = await client.stream<Chunk>('/chat/completions', body, watch.signal);
    watch.touch();
    yield* readChunks(chunks, request, name, watch);
  }

  return {
    name,
    capabilities: {
      ...STATELESS,
      templateMarks: MARKS,
      interleavedSystem: quirks.interleavedSystem ?? false,
      images: quirks.images ?? false,
    },
    server: serverOf(baseUrl),
    ...(tools && { toolProblem: (tool) => toolProblem(tool, tools) }),
    stream: guardedStream({
      name,
      limits,
      secrets: [apiKey, ...extras.secrets],
      templateMarks: MARKS,
      tools,
      read,
    }),
  };
}

function chatSampling(sampling: Sampling, { trace }: ModelRequest, { seedField }: ChatQuirks): object {
  return givenOf({
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_k: sampling.topK,
    frequency_penalty: sampling.frequencyPenalty,
    presence_penalty: sampling.presencePenalty,
    [seedField ?? 'seed']: sampling.seed,
    stop: trace.purpose === 'compaction' ? undefined : sampling.stop,
  });
}

type Choice = OpenAI.ChatCompletionChunk['choices'][number];
type Chunk = Omit<OpenAI.ChatCompletionChunk, 'choices'> & {
  choices: (Omit<Choice, 'delta'> & { delta?: Delta | null; message?: Delta | null })[];
};
type Delta = Omit<Choice['delta'], 'content' | 'tool_calls' | 'function_call'> & {
  content?: string | Part[] | null;
  tool_calls?: unknown;
  function_call?: unknown;
  reasoning?: unknown;
};
/** The end as servers tell it. */
interface End {
  finish_reason?: unknown;
  native_finish_reason?: unknown;
  error?: { message?: unknown } | null;
}
const NAMED_BY_VENDOR: readonly unknown[] = ['malformed', 'refusal'];
/** Mistral's reasoning models answer in parts. */
type Part = { type: 'text'; text: string } | { type: 'thinking'; thinking?: Part[] };

/** Converts chunks to events. Whole calls are held back until the vendor says that the answer is finished. */
async function* readChunks(
  chunks: AsyncIterable<Chunk>,
  request: ModelRequest,
  provider: string,
  { touch, meter }: Pick<StreamWatch, 'touch' | 'meter'>,
): AsyncGenerator<ModelEvent> {
  const answer = new Answer(meter, request);
  try {
    for await (const chunk of chunks) {
      touch();
      yield* answer.add(chunk);
    }
  } catch (thrown) {
    // After the finish reason the answer is complete; only the usage chunk was lost.
    if (answer.finish === null) throw thrown;
  }
  yield* answer.end(provider);
}

/** The parts of an answer that are kept until its end. */
class Answer {
  readonly #meter: ReplyMeter;
  readonly #request: ModelRequest;
  readonly #calls: CallAssembly;
  readonly #attached: Attachments;
  finish: string | null = null;
  #said = '';
  #reasoning = '';
  /** The message as servers send it in place of pieces, or beside them. */
  #whole: Delta | null = null;
  #usage = NO_USAGE;
  #response: ResponseName = {};
  #refused = false;
  #problem: unknown;

  constructor(meter: ReplyMeter, request: ModelRequest) {
    this.#meter = meter;
    this.#request = request;
    this.#calls = new CallAssembly(meter, request.trace);
    this.#attached = new Attachments(meter);
  }

  /** Yields the texts of the chunk, and its pieces of reasoning and calls. */
  *add(chunk: Chunk): Generator<ModelEvent> {
    this.#response = { model: chunk.model || this.#response.model, id: chunk.id || this.#response.id };
    if (chunk.usage) this.#usage = usageOf(chunk.usage);
    const choice = chunk.choices?.[0];
    if (!choice) return;
    if (choice.delta) yield* this.#read(choice.delta);
    this.#whole = choice.message ?? this.#whole;
    this.#readEnd(choice);
  }

  *#read(delta: Delta): Generator<ModelEvent> {
    const parts = typeof delta.content === 'string' ? [] : (delta.content ?? []);
    const thought = thoughtIn(delta as Record<string, unknown>);
    this.#attached.add(delta as Record<string, unknown>, thought.field);
    yield* this.#think(thought.text + thinkingOf(parts));
    yield* this.#say(typeof delta.content === 'string' ? delta.content : textOf(parts));
    if (delta.refusal) {
      this.#refused = true;
      yield* this.#say(delta.refusal);
    }
    yield* this.#calls.add(delta.tool_calls ?? delta.function_call);
  }

  *#say(delta: string): Generator<ModelEvent> {
    this.#said += delta;
    if (delta) yield { type: 'text', delta };
  }

  /** What of the whole message no piece has said. */
  *#readRest(whole: Delta): Generator<ModelEvent> {
    const { content, refusal, tool_calls, function_call } = whole;
    const text = typeof content === 'string' ? content : textOf(content ?? []);
    const isSaid = this.#said !== '' && !text.startsWith(this.#said);
    const thoughts = { reasoning_content: '', reasoning: '', reasoning_text: '' };
    const thinking = typeof content === 'string' ? '' : thinkingOf(content ?? []);
    yield* this.#read({
      ...(this.#attached.isEmpty && whole),
      ...(this.#reasoning === '' ? thinking !== '' && { reasoning: thinking } : thoughts),
      content: isSaid ? '' : text.slice(this.#said.length),
      refusal: this.#said === '' ? (refusal ?? null) : null,
      tool_calls: this.#calls.isEmpty ? tool_calls : null,
      function_call: this.#calls.isEmpty ? function_call : null,
    });
  }

  #readEnd({ finish_reason: finish, native_finish_reason: native, error }: End): void {
    // DashScope says "null" of an answer that goes on.
    if (typeof finish === 'string' && finish !== '' && finish !== 'null') this.finish = finish;
    // OpenRouter calls the ends of all vendors by a few names.
    if (this.finish !== null && NAMED_BY_VENDOR.includes(kindOfEnd(native))) this.finish = String(native);
    if (error) this.#problem = error.message;
  }

  *#think(delta: string): Generator<ModelEvent> {
    this.#meter.reasoning(delta);
    this.#reasoning += delta;
    if (delta) yield { type: 'thinking', delta };
  }

  *end(provider: string): Generator<ModelEvent> {
    const { finish } = this;
    if (finish === null) return;
    if (this.#whole) yield* this.#readRest(this.#whole);
    const calls = [...this.#calls.finished()];
    const end = vendorEnd(finish, calls.length > 0, this.#problem);
    if ('failed' in end) return yield { type: 'failed', error: end.failed };
    const signature = this.#attached.signature(calls.map(({ id }) => id));
    if (this.#reasoning !== '' || signature !== null) {
      const { model } = this.#request;
      const signed = signature === null ? {} : { signature };
      yield { type: 'reasoning', reasoning: { text: this.#reasoning, ...signed, provider, model } };
    }
    for (const call of calls) yield { type: 'call', call };
    const stop = this.#refused ? 'refusal' : end.stop;
    const begun = stop === 'length' ? this.#calls.begun : {};
    yield { type: 'done', ...end, ...begun, stop, usage: this.#usage, response: this.#response };
  }
}

function thinkingOf(parts: readonly Part[]): string {
  return parts.map((part) => (part?.type === 'thinking' ? textOf(part.thinking ?? []) : '')).join('');
}

function textOf(parts: readonly Part[]): string {
  return parts.map((part) => (part?.type === 'text' ? part.text : '')).join('');
}

type VendorUsage = OpenAI.CompletionUsage & { prompt_cache_hit_tokens?: number };

/** The usage as reported; its plausibility is checked for all vendors alike. */
function usageOf(usage: VendorUsage): Usage {
  const cached = usage.prompt_tokens_details?.cached_tokens ?? usage.prompt_cache_hit_tokens;
  const written = (usage.prompt_tokens_details as { cache_write_tokens?: number } | undefined)
    ?.cache_write_tokens;
  return {
    input: usage.prompt_tokens ?? 0,
    output: usage.completion_tokens ?? 0,
    cacheRead: cached ?? 0,
    cacheWrite: written ?? 0,
    reasoning: usage.completion_tokens_details?.reasoning_tokens ?? 0,
  };
}
