import type OpenAI from 'openai';
import { serverOf } from '../vendor-fetch.ts';
import { guardedStream, type StreamWatch } from '../guard-stream.ts';
import { openAiClient } from './client.ts';
import { openAiBody, Attachments, thoughtIn } from './chat-messages.ts';
import {
  type ModelEvent,
  type ModelRequest,
  type Provider,
  type ResponseName,
  STATELESS,
} from '../provider.ts';
import { replyLimits, type ReplyLimitSettings, type ReplyMeter } from '../reply-limits.ts';
import { type ChatQuirks, quirksOf, toolRules } from '../quirks.ts';
import { toolProblem } from '../fit-tools.ts';
import { NO_EXTRAS, type RequestExtras, givenOf, type Sampling } from '../request-settings.ts';
import { NO_USAGE, type Usage, type ToolCall } from '../../events/index.ts';
import { kindOfEnd, vendorEnd } from '../stop-reasons.ts';
import { mintCallId, parseArgs } from '../call-text.ts';

interface OpenAiCompatibleOptions {
  name?: string;
  baseUrl: string;
  apiKey: string;
  /** Limits of the size and duration of an answer. */
  replyLimits?: ReplyLimitSettings;
  /** Overrides the known quirks of the host. */
  quirks?: Parameters<typeof quirksOf>[1];
  sampling?: Sampling;
  extras?: RequestExtras;
}

/** Servers such as llama.cpp and vLLM insert the text of messages into the model's template, whichever family it is of. */
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
/** The end as servers report it. */
interface End {
  finish_reason?: unknown;
  native_finish_reason?: unknown;
  error?: { message?: unknown } | null;
}
const NAMED_BY_VENDOR: readonly unknown[] = ['malformed', 'refusal'];
/** Mistral's reasoning models answer in parts. */
type Part = { type: 'text'; text: string } | { type: 'thinking'; thinking?: Part[] };

/** Converts chunks to events. Whole calls are yielded after the vendor has said that the answer is finished. */
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
    // An error after the finish reason loses only the usage.
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
  /** A whole message, which servers send instead of pieces or in addition to them. */
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

  /** Yields the chunk's text, and its pieces of reasoning and calls. */
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

  /** Yields what the whole message adds to the pieces. */
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
    // DashScope sends "null" while an answer goes on.
    if (typeof finish === 'string' && finish !== '' && finish !== 'null') this.finish = finish;
    // OpenRouter maps all vendors' reasons to a few names; the vendor's own is more exact.
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

/** The usage as reported. Its plausibility is checked for all vendors alike. */
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

interface Call {
  /** The server's number for the call. */
  index: unknown;
  /** The server's own id. */
  given: string;
  id: string;
  name: string;
  args: string;
  /** How far the arguments were searched for their end. */
  readonly end: ObjectEnd;
  /** Its pieces are yielded. If another call of the answer has the same id, only the first one's are. */
  isTold: boolean;
  /** Its name came again after its arguments were whole, so the next arguments belong to another call. */
  isNamedAgain: boolean;
}

/** A fragment of a call, read without trusting its types. */
interface Fragment {
  index: unknown;
  id: string;
  name: string;
  args: string;
  /** The arguments came as an object, and are therefore whole. */
  isObject: boolean;
}

/**
 * The calls of an answer, assembled from their fragments.
 *  C1  A fragment belongs to the call with its id, else with its index, else to the last call. Servers may number all calls 0,
 *      number none, or send no ids: then a new call begins with another name, with another entry of the same chunk, or with
 *      arguments that begin again after they were whole.
 *  C2  A call yields pieces once it has a name. If it has no id by then, it gets one and keeps it.
 *  C3  A call that is sent again whole is the same call.
 *  C4  An id that changes from fragment to fragment begins a new call only together with a name.
 */
class CallAssembly {
  readonly #calls: Call[] = [];
  readonly #told = new Set<string>();
  readonly #meter: ReplyMeter;
  readonly #trace: ModelRequest['trace'];

  constructor(meter: ReplyMeter, trace: ModelRequest['trace']) {
    this.#meter = meter;
    this.#trace = trace;
  }

  get isEmpty(): boolean {
    return this.#calls.length === 0;
  }

  /** Reads `tool_calls` of one chunk, or the older `function_call`. Yields the new pieces. */
  *add(given: unknown): Generator<ModelEvent> {
    if (!given) return;
    const inChunk = new Set<Call>();
    for (const each of Array.isArray(given) ? (given as unknown[]) : [given]) {
      const fragment = fragmentOf(each);
      if (!fragment) continue;
      this.#meter.arguments(fragment.args);
      const known = this.#known(fragment);
      if (known && isAgain(known, fragment)) continue;
      const call = known && isOf(known, fragment, inChunk) ? known : this.#begin(fragment, known);
      inChunk.add(call);
      yield* this.#extend(call, fragment);
    }
  }

  #known({ id, name, index }: Fragment): Call | undefined {
    const isHere = (call: Call) => index === undefined || call.index === index;
    const named = id === '' ? undefined : this.#calls.findLast((call) => call.given === id && isHere(call));
    const placed = named ?? this.#calls.findLast(isHere);
    return placed ?? (id === '' && name === '' ? this.#calls.at(-1) : undefined);
  }

  #begin({ index, name }: Fragment, before: Call | undefined): Call {
    this.#meter.call();
    const call: Call = {
      index: index ?? before?.index,
      given: '',
      id: '',
      name: name || (before?.isNamedAgain ? before.name : ''),
      args: '',
      end: new ObjectEnd(),
      isTold: false,
      isNamedAgain: false,
    };
    this.#calls.push(call);
    return call;
  }

  *#extend(call: Call, { id, name, args, isObject }: Fragment): Generator<ModelEvent> {
    call.given ||= id;
    call.id ||= call.given;
    call.name ||= name;
    if (name !== '' && args === '' && call.end.isWhole(call.args)) call.isNamedAgain = true;
    if (!isObject || call.args === '') call.args += args;
    else if (args !== '{}') call.args = args;
    if (call.isTold) {
      if (args && call.id) yield { type: 'calling', id: call.id, name: call.name, delta: args };
    } else if (call.name) yield* this.#tell(call);
  }

  *#tell(call: Call): Generator<ModelEvent> {
    call.id ||= mintCallId(this.#trace, this.#calls.indexOf(call));
    if (this.#told.has(call.id)) return;
    this.#told.add(call.id);
    call.isTold = true;
    yield { type: 'calling', id: call.id, name: call.name, delta: call.args };
  }

  /** The tool that was named again and got no arguments. In a cut answer this was the next call. */
  get begun(): { broken?: string } {
    const last = this.#calls.at(-1);
    return last?.isNamedAgain ? { broken: last.name } : {};
  }

  *finished(): Generator<ToolCall> {
    for (const [i, { id, name, args }] of this.#calls.entries()) {
      if (name !== '' || args !== '') yield { id: id || mintCallId(this.#trace, i), name, args };
    }
  }
}

/** Whether the fragment continues this call. */
function isOf(known: Call, { id, name, args }: Fragment, inChunk: ReadonlySet<Call>): boolean {
  const isOther = id !== '' && known.given !== '' && id !== known.given;
  if (isOther && (name !== '' || args === '')) return false;
  const beginsAnew = /^[{"]/.test(args) && known.end.isWhole(known.args);
  if (name === '') return !(beginsAnew && known.isNamedAgain);
  return !inChunk.has(known) && (known.name === '' || known.name === name) && !beginsAnew;
}

/** Whether the fragment is the whole call once more, which some servers send at the end. */
function isAgain(known: Call, { id, name, args }: Fragment): boolean {
  if (id !== known.given || (name !== '' && name !== known.name)) return false;
  // White space aside, both have about the same length, so a far shorter text need not be parsed.
  return args.startsWith('{') && known.args.length <= 2 * args.length + 16 && sameJson(args, known.args);
}

function sameJson(one: string, other: string): boolean {
  if (!new ObjectEnd().isWhole(one)) return false;
  const parsed = one === other ? null : parseArgs(one);
  return one === other || (parsed !== null && JSON.stringify(parsed) === JSON.stringify(parseArgs(other)));
}

/** Finds the end of an object while its text grows. Each character is read once, however often it is asked. */
class ObjectEnd {
  #at = 0;
  #depth = 0;
  #isText = false;
  #hasKey = false;

  /** Whether the text is one complete object with at least one field. */
  isWhole(args: string): boolean {
    for (; this.#at < args.length; this.#at += 1) {
      const sign = args[this.#at];
      if (this.#isText && sign === '\\') this.#at += 1;
      else if (sign === '"') {
        this.#isText = !this.#isText;
        this.#hasKey = true;
      } else if (!this.#isText && (sign === '{' || sign === '[')) this.#depth += 1;
      else if (!this.#isText && (sign === '}' || sign === ']')) this.#depth -= 1;
    }
    return this.#hasKey && !this.#isText && this.#depth === 0;
  }
}

type Fields = { readonly [field: string]: unknown };

/** Servers put arguments beside the function, use other names for them, or send an object instead of text. */
function fragmentOf(given: unknown): Fragment | null {
  if (typeof given !== 'object' || given === null) return null;
  const entry = given as Fields;
  const inner = entry['function'];
  const made = typeof inner === 'object' && inner !== null ? (inner as Fields) : entry;
  const args = argsOf(made) ?? argsOf(entry) ?? '';
  const { id, index } = entry;
  return {
    index: index ?? undefined,
    id: typeof id === 'number' ? String(id) : stringOf(id),
    name: stringOf(made['name']),
    args: typeof args === 'string' ? args : JSON.stringify(args),
    isObject: typeof args !== 'string',
  };
}

function argsOf({ arguments: args, parameters, input }: Fields): unknown {
  return args ?? parameters ?? input ?? undefined;
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
