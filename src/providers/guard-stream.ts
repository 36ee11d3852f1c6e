import { classifyFailure, shownMessage, vendorErrorOf } from './classify-failure.ts';
import type {
  ModelEvent,
  ModelFailure,
  ModelRequest,
  Provider,
  ProviderCapabilities,
  ResponseName,
} from './provider.ts';
import { wholeCalls, argsText, mintCallId } from './call-text.ts';
import { ThoughtSplitter } from './thoughts.ts';
import { type Reasoning, type ToolCall, NO_USAGE, type Usage } from '../events/index.ts';
import { limitsFor, type ReplyLimits, ReplyMeter, replyTooLong } from './reply-limits.ts';
import { type MarkFamily, MarkRestorer, restoredCall, withPlainMarks } from './template-marks.ts';
import type { ToolRules } from './tool-schema.ts';
import { ownFailure } from './vendor-fetch.ts';
import { withFittedTools } from './fit-tools.ts';
import { ERROR_CODES, type ErrorCode, TroupeError } from '../base/errors.ts';

/** What the guard offers to an adapter's reader. */
export interface StreamWatch {
  /** Aborts the vendor's request. */
  signal: AbortSignal;
  /** The reader must call it for every chunk, including those that yield no event. */
  touch: () => void;
  /** Counts what the reader buffers: reasoning, arguments, calls. The guard itself counts text. */
  meter: ReplyMeter;
}

interface GuardOptions {
  /** Name of the provider. */
  name: string;
  /** What the model is asked. */
  request: ModelRequest;
  /** Ends the stream with `aborted`. */
  signal: AbortSignal;
  /** Limits of one answer. */
  limits: ReplyLimits;
  /** The provider remembers the conversation. */
  remembers?: boolean;
  /** Yields text, reasoning, calls, and `done` or `failed`. May throw, and may end early if the vendor's stream did. */
  read: (watch: StreamWatch) => AsyncIterable<ModelEvent>;
  /** Texts that are removed from messages: vendors repeat parts of a request in their errors. */
  secrets: readonly string[];
}

/** The `stream` method of an adapter. */
export function guardedStream({
  read,
  templateMarks = [],
  tools,
  ...parts
}: Omit<GuardOptions, 'request' | 'signal' | 'read'> &
  Pick<ProviderCapabilities, 'templateMarks'> & {
    read: (request: ModelRequest, watch: StreamWatch) => AsyncIterable<ModelEvent>;
    /** The vendor's rules for tools. Absent: tools are sent unchanged. */
    tools?: ToolRules | undefined;
  }): Provider['stream'] {
  return (asked, { signal }) => {
    const { request, restore } = withFittedTools(withPlainMarks(asked, templateMarks), tools);
    const stream = restore(guardStream({ ...parts, request, signal, read: (watch) => read(request, watch) }));
    return templateMarks.length === 0 ? stream : withMarksRestored(stream, templateMarks);
  };
}

/** Restores escaped marks in the model's text and calls. Text and calls may alternate in pieces without ending each other. */
async function* withMarksRestored(
  events: AsyncIterable<ModelEvent>,
  marks: readonly MarkFamily[],
): AsyncGenerator<ModelEvent> {
  const words = new MarkRestorer(marks);
  const written = new Map<string, MarkRestorer>();
  for await (const event of events) {
    if (event.type === 'thinking') yield event;
    else if (event.type === 'calling') {
      const args = written.get(event.id) ?? new MarkRestorer(marks, 'json');
      const isNew = !written.has(event.id);
      written.set(event.id, args);
      const delta = args.push(event.delta);
      if (delta !== '' || isNew) yield { ...event, delta };
    } else {
      const delta = event.type === 'text' ? words.push(event.delta) : words.end();
      if (delta !== '') yield { type: 'text', delta };
      if (event.type === 'call') {
        const { id, name } = event.call;
        const rest = written.get(id)?.end() ?? '';
        if (rest !== '') yield { type: 'calling', id, name, delta: rest };
        yield { ...event, call: restoredCall(event.call, marks) };
      } else if (event.type !== 'text') yield event;
    }
  }
}

/**
 * Holds an adapter to the contract of the provider port, whatever its SDK and vendor do. SDKs end quietly on an abort or a cut
 * connection, and may never settle; vendors may send anything, of any length. So the guard races the stream against the abort
 * instead of trusting the SDK with it, and validates each event.
 */
async function* guardStream(options: GuardOptions): AsyncGenerator<ModelEvent> {
  const { signal, remembers, read, secrets } = options;
  // The answer of a provider with a memory includes all text between its own tool calls, so it may exceed `maxOutputTokens`.
  const limits = remembers ? options.limits : limitsFor(options.limits, options.request.maxOutputTokens);
  yield { type: 'start' };
  if (signal.aborted) {
    yield { type: 'aborted' };
    return;
  }
  const request = new AbortController();
  const interrupted = Promise.withResolvers<'aborted' | 'silent' | 'late'>();
  const abort = () => interrupted.resolve('aborted');
  signal.addEventListener('abort', abort, { once: true });
  let opened = false;
  let timer: NodeJS.Timeout | undefined;
  const deadline = setTimeout(() => interrupted.resolve('late'), limits.totalMs);
  const meter = new ReplyMeter(limits);
  const check = new AnswerCheck(options, meter);
  const events = read({
    signal: request.signal,
    touch() {
      opened = true;
      timer?.refresh();
    },
    meter,
  })[Symbol.asyncIterator]();
  try {
    while (true) {
      // Set only while we wait: a slow consumer is not a silent vendor.
      timer = setTimeout(() => interrupted.resolve('silent'), limits.silenceMs);
      const next = events.next();
      next.catch(ignore);
      const step = await Promise.race([interrupted.promise, next]);
      clearTimeout(timer);
      timer = undefined;
      if (step === 'aborted' || signal.aborted) {
        yield { type: 'aborted' };
        return;
      }
      if (step === 'late') throw replyTooLong('totalMs', limits);
      if (step === 'silent') {
        yield { type: 'failed', error: silence(limits.silenceMs, opened) };
        return;
      }
      if (step.done) {
        yield { type: 'failed', error: { code: 'provider_truncated', message: TRUNCATED } };
        return;
      }
      const given = check.pass(step.value);
      yield* given;
      const last = given.at(-1)?.type;
      if (last === 'done' || last === 'failed') return;
    }
  } catch (thrown) {
    if (signal.aborted) yield { type: 'aborted' };
    else
      yield {
        type: 'failed',
        error: namingTool(failureOf(thrown, { opened, secrets }), options.request.tools),
      };
  } finally {
    clearTimeout(timer);
    clearTimeout(deadline);
    signal.removeEventListener('abort', abort);
    request.abort(reasonOf(signal));
    events.return?.().catch(ignore);
  }
}

/** Called once: an abort without a reason creates an error with a stack. */
function reasonOf(signal: AbortSignal): unknown {
  return signal.aborted ? signal.reason : ENDED;
}
const ENDED = new DOMException('the stream has ended', 'AbortError');

const TRUNCATED = 'the stream ended before the model had finished its answer';

function silence(silenceMs: number, opened: boolean): ModelFailure {
  const code = opened ? 'provider_truncated' : 'provider_unreachable';
  return { code, message: `nothing was received for ${silenceMs} ms` };
}

/**
 * Validates the events of an adapter (order, types of texts, lengths of names, plausible usage) and returns those to pass on.
 * Calls are held back until the end, which tells whether they are whole; a session's calls are passed on at once, because its
 * program runs them. Pieces have a meter of their own, so that their text is not counted twice.
 */
class AnswerCheck {
  readonly #options: GuardOptions;
  readonly #remembers: boolean;
  readonly #meter: ReplyMeter;
  readonly #shown: ReplyMeter;
  readonly #pieces: ReturnType<typeof createPieceCheck>;
  readonly #thoughts = new ThoughtSplitter();
  readonly #calls: ToolCall[] = [];
  #hasSpoken = false;
  #hasReasoned = false;

  constructor(options: GuardOptions, meter: ReplyMeter) {
    this.#options = options;
    this.#remembers = options.remembers ?? false;
    this.#meter = meter;
    this.#shown = new ReplyMeter(meter.limits);
    this.#pieces = createPieceCheck(this.#shown);
  }

  pass(event: ModelEvent): readonly ModelEvent[] {
    switch (event.type) {
      case 'text':
        this.#meter.text(checkText(event.delta));
        return this.#remembers ? [event] : this.#heard(this.#thoughts.push(event.delta));
      case 'thinking':
        this.#shown.reasoning(checkText(event.delta, 'a piece of reasoning'));
        return [event];
      case 'reasoning':
        return [this.#reason(event.reasoning)];
      case 'calling':
        return this.#addPiece(event);
      case 'call':
        return this.#addCall(event.call);
      case 'done':
        return this.#finish(event);
      case 'failed':
        return [{ type: 'failed', error: checkFailure(event.error, this.#options.secrets) }];
      case 'begun':
        checkText(event.mark, 'a mark');
        return [event];
      case 'session':
      case 'compacted':
        if (!this.#remembers) throw unexpected(event);
        return [event];
      case 'start':
      case 'aborted':
        throw unexpected(event);
      default:
        throw unexpected(event satisfies never);
    }
  }

  #heard(events: readonly ModelEvent[]): readonly ModelEvent[] {
    this.#hasSpoken ||= events.some((event) => event.type === 'text' && event.delta.trim() !== '');
    return events;
  }

  /** Adds reasoning from tags in the text to reasoning that the vendor sends separately. Signed reasoning must not change. */
  #reason(given: Reasoning): ModelEvent {
    this.#hasReasoned = true;
    const reasoning = checkReasoning(given);
    const { thoughts } = this.#thoughts;
    if (reasoning.signature !== undefined || thoughts === '') return { type: 'reasoning', reasoning };
    return { type: 'reasoning', reasoning: { ...reasoning, text: `${reasoning.text}\n\n${thoughts}` } };
  }

  #addCall(given: ToolCall): readonly ModelEvent[] {
    const call = checkCall(given, this.#options.request, this.#calls);
    this.#pieces.whole(call);
    this.#calls.push(call);
    return this.#remembers ? [{ type: 'call', call }] : [];
  }

  #addPiece(event: Extract<ModelEvent, { type: 'calling' }>): readonly ModelEvent[] {
    const piece = this.#pieces.calling(event);
    return piece ? [piece] : [];
  }

  #finish(event: Done): readonly ModelEvent[] {
    const { name, request, secrets } = this.#options;
    const remembers = this.#remembers;
    const usage = checkUsage(event.usage, { request, saidBytes: this.#meter.said, remembers });
    const end = sound(event, usage, secrets);
    if (remembers) return [end];
    const rest = this.#heard(this.#thoughts.end(end.stop !== 'length' && this.#calls.length === 0));
    const text = this.#hasReasoned ? '' : this.#thoughts.thoughts;
    const reasoning = { text, provider: name, model: request.model };
    const before: readonly ModelEvent[] = text === '' ? rest : [...rest, { type: 'reasoning', reasoning }];
    return [...before, ...this.#ended(event, end)];
  }

  #ended(event: Done, end: Done): readonly ModelEvent[] {
    const { request, secrets } = this.#options;
    const hasSpoken = this.#hasSpoken;
    const unfinished = this.#pieces.unfinished(this.#calls.length);
    const [last, ...whole] = settledEnd(end, this.#calls, { hasSpoken, unfinished, request });
    if (event.ended === undefined || hasSpoken || whole.length > 0 || last.broken !== undefined)
      return [...whole, last];
    return [{ type: 'failed', error: unknownEnd(event.ended, secrets) }];
  }
}

/** The end of an answer, and the calls that may run. The end names a call that may not. */
function settledEnd(
  end: Done,
  given: readonly ToolCall[],
  {
    hasSpoken,
    unfinished,
    request,
  }: { hasSpoken: boolean; unfinished: string | undefined; request: ModelRequest },
): [Done, ...ModelEvent[]] {
  const { calls, isCut, broken: cut } = wholeCalls(given, end, request.maxOutputTokens);
  const isEmpty = calls.length === 0;
  // The server announced calls and sent none.
  const lost = isEmpty && !hasSpoken && end.stop === 'calls' ? '' : undefined;
  const broken = cut ?? end.broken ?? (end.stop === 'refusal' ? undefined : unfinished) ?? lost;
  const stop = isCut ? 'length' : isEmpty && end.stop === 'calls' ? 'end' : end.stop;
  const whole = calls.map((call): ModelEvent => ({ type: 'call', call }));
  return [{ ...end, stop, ...(broken !== undefined && { broken }) }, ...whole];
}

type Done = Extract<ModelEvent, { type: 'done' }>;

/** The vendor gave an unknown reason and no answer, so people must see the reason. */
function unknownEnd(word: string, secrets: readonly string[]): ModelFailure {
  const message = `the vendor ended the answer with ${JSON.stringify(word.slice(0, 100))}, and nothing was said`;
  return { code: 'provider_failed', message: shownMessage(message, secrets) };
}

function sound(
  { response, stop, session, broken }: Done,
  usage: Pick<Done, 'usage' | 'doubt'>,
  secrets: readonly string[],
): Done {
  const name = response && checkName(response, secrets);
  return {
    type: 'done',
    stop: checkStop(stop),
    ...usage,
    ...(session && { session }),
    ...(name && { response: name }),
    ...(typeof broken === 'string' && { broken: broken.slice(0, 256) }),
  };
}

function failureOf(
  thrown: unknown,
  { opened, secrets }: { opened: boolean; secrets: readonly string[] },
): ModelFailure {
  const own = ownFailure(thrown);
  if (own?.code === 'package_missing') return { code: 'provider_unusable', message: own.message };
  if (own && isFailureCode(own.code)) return { code: own.code, message: shownMessage(own.message, secrets) };
  return classifyFailure(vendorErrorOf(thrown), { opened, now: Date.now(), secrets });
}

/** How vendors number a tool in an error: Anthropic and OpenAI as `tools.0`, Gemini within `function_declarations`. */
const COUNTS = [/function_declarations\[(\d{1,4})\]/, /\btools?[.[](\d{1,4})(?!\d)/];

/** Adds the tool's name to a failure that gives only its number. */
function namingTool(failure: ModelFailure, tools: ModelRequest['tools']): ModelFailure {
  const [, index] = COUNTS.map((count) => count.exec(failure.message)).find(Boolean) ?? [];
  const name = index === undefined ? undefined : tools[Number(index)]?.name;
  if (name === undefined || failure.message.includes(name)) return failure;
  return { ...failure, message: `${failure.message} (the tool "${name}")` };
}

/** The end of the stream was already reported; a later outcome of the SDK changes nothing. */
function ignore(): void {}

/** Facts about a call that are known without its vendor. */
interface CallFacts {
  request: ModelRequest;
  /** Bytes of text, reasoning and arguments received. */
  saidBytes: number;
  /** The provider adds its own memory to the request, and may call its model many times for one answer. */
  remembers: boolean;
}

/** Allowance for tokens that vendors add around messages, for tools and for a harness. Otherwise a token takes at least one byte. */
const ADDED_TOKENS = 65_536;
const TOKENS_PER_MESSAGE = 64;
const TOKENS_PER_IMAGE = 65_536;
/** Allowance for hidden reasoning beyond `maxOutputTokens`: some servers do not count it as output. */
const HIDDEN_TIMES = 4;
const HIDDEN_TOKENS = 65_536;
/** For a provider with a memory: a hundred calls of a million tokens. */
const REMEMBERED_TOKENS = 100_000_000;

/**
 * The vendor's usage if it is plausible for this call, else none, with the reason for the doubt. Budgets, prices and estimates
 * rely on it, so one figure that contradicts what was sent or received discredits all of them.
 */
function checkUsage(reported: Usage, facts: CallFacts): { usage: Usage; doubt?: string } {
  const doubt = doubtOf(reported, facts);
  return doubt === null ? { usage: reported } : { usage: NO_USAGE, doubt };
}

function doubtOf(reported: Usage, facts: CallFacts): string | null {
  for (const name of Object.keys(NO_USAGE) as (keyof Usage)[]) {
    const value: unknown = (Object(reported) as Usage)[name];
    if (!Number.isSafeInteger(value) || (value as number) < 0) return `${name} is ${shown(value)}`;
  }
  const { input, output, cacheRead, cacheWrite, reasoning } = reported;
  if (cacheRead + cacheWrite > input)
    return `${cacheRead + cacheWrite} cached tokens in an input of ${input}`;
  const mostInput = facts.remembers ? REMEMBERED_TOKENS : mostSent(facts.request, input);
  if (input > mostInput) return `input is ${input}, but the request has at most ${mostInput} tokens`;
  const { maxOutputTokens } = facts.request;
  const mostOutput = facts.remembers
    ? REMEMBERED_TOKENS
    : facts.saidBytes + maxOutputTokens * HIDDEN_TIMES + HIDDEN_TOKENS;
  const most = Math.max(output, reasoning);
  return most > mostOutput ? `output is ${most}, but the answer has at most ${mostOutput} tokens` : null;
}

/** Upper bound of the tokens in the request. Counting stops once it reaches `enough`. */
function mostSent({ messages, images, tools, replySchema }: ModelRequest, enough: number): number {
  const framed = messages.length * TOKENS_PER_MESSAGE + ADDED_TOKENS;
  // Writing a long prompt as JSON takes as long as the rest of a turn. The messages' text alone nearly always suffices.
  const words = messages.reduce((sum, { content }) => sum + content.length, framed);
  if (words >= enough) return words;
  const bytes = messages.reduce((sum, message) => sum + sizeOf(message), 0);
  const named = sizeOf(tools) + (replySchema ? sizeOf(replySchema) : 0);
  const pictures = (images?.size ?? 0) * TOKENS_PER_IMAGE;
  return bytes + named + pictures + framed;
}

function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : String(value).slice(0, 40);
}

const MAX_CHARACTERS = 200;

/** The vendor's own names, bounded in length, and dropped if they contain a secret. */
function checkName(name: ResponseName, secrets: readonly string[]): ResponseName | undefined {
  const model = responseText(name.model, secrets);
  const id = responseText(name.id, secrets);
  if (model === undefined && id === undefined) return undefined;
  return { ...(model !== undefined && { model }), ...(id !== undefined && { id }) };
}

function responseText(text: unknown, secrets: readonly string[]): string | undefined {
  if (typeof text !== 'string' || text === '') return undefined;
  if (secrets.some((secret) => secret !== '' && text.includes(secret))) return undefined;
  return text.slice(0, MAX_CHARACTERS).toWellFormed();
}

const MAX_NAME_LENGTH = 256;

/** Checks the types, because servers are not trusted. Throws `provider_invalid_reply`. */
function checkReasoning(reasoning: Reasoning): Reasoning {
  const { text, signature, provider, model } = Object(reasoning) as Reasoning;
  if (typeof text !== 'string') throw unsound('reasoning', text);
  if (signature !== undefined && typeof signature !== 'string') throw unsound('a signature', signature);
  if (typeof provider !== 'string') throw unsound('the provider of reasoning', provider);
  if (typeof model !== 'string') throw unsound('the model of reasoning', model);
  return reasoning;
}

function checkText(delta: unknown, what = 'text'): string {
  if (typeof delta !== 'string') throw unsound(what, delta);
  return delta;
}

/**
 * The call with a name and arguments that events accept, and a unique id: results find their calls by it. `before`: the
 * earlier calls of the answer.
 */
function checkCall(
  { id: given, name, args }: ToolCall,
  { trace }: ModelRequest,
  before: readonly ToolCall[],
): ToolCall {
  const id = nameOf(given);
  const isTaken = id === '' || before.some((call) => call.id === id);
  return {
    id: isTaken ? mintCallId(trace, before.length) : id,
    name: nameOf(name) || 'unknown',
    args: argsText(args),
  };
}

type Calling = Extract<ModelEvent, { type: 'calling' }>;

/**
 * Pieces of calls for watchers, with the id and name that their call will have. Null for a piece to ignore: it has no id, or
 * its call is already whole.
 */
function createPieceCheck(meter: ReplyMeter) {
  /** Names of the calls that have begun, by id. Null once a call is whole. */
  const begun = new Map<string, string | null>();
  let told = 0;
  return {
    calling({ id: givenId, name: givenName, delta }: Calling): Calling | null {
      checkText(delta, 'a piece of the arguments of a call');
      const id = nameOf(givenId);
      const known = begun.get(id);
      if (id === '' || known === null) return null;
      if (known === undefined) {
        meter.call();
        told += 1;
      }
      meter.arguments(delta);
      const name = known ?? (nameOf(givenName) || 'unknown');
      begun.set(id, name);
      return { type: 'calling', id, name, delta };
    },
    whole({ id }: ToolCall): void {
      begun.set(id, null);
    },
    /** Name of a tool whose call has begun but is not among the `whole` calls. */
    unfinished(whole: number): string | undefined {
      return told > whole ? ([...begun.values()].findLast((name) => name !== null) ?? undefined) : undefined;
    },
  };
}

const STOPS: readonly unknown[] = ['end', 'calls', 'length', 'refusal'] satisfies Stop[];
type Stop = Extract<ModelEvent, { type: 'done' }>['stop'];

function checkStop(stop: Stop): Stop {
  if (STOPS.includes(stop)) return stop;
  throw invalid(`the answer stops with ${shown(stop)}, and not with one of ${STOPS.join(', ')}`);
}

/** The failure with a code of the port. Its message may come from the vendor. */
function checkFailure(failure: ModelFailure, secrets: readonly string[]): ModelFailure {
  const { code, message, retryAfterMs, isAway } = Object(failure) as ModelFailure;
  const said = typeof message === 'string' && message !== '' ? message : 'the provider gives no reason';
  return {
    code: isFailureCode(code) ? code : 'provider_failed',
    message: shownMessage(said, secrets),
    ...(Number.isFinite(retryAfterMs) && { retryAfterMs }),
    ...(isAway === true && { isAway }),
  };
}

function isFailureCode(code: ErrorCode): code is ModelFailure['code'] {
  return ERROR_CODES.includes(code) && (code.startsWith('provider_') || code === 'context_overflow');
}

/** The error for an event that no reader may yield. */
function unexpected(event: { type: unknown }): TroupeError {
  return invalid(`an event of the type ${shown(event.type)} has no place in the answer`);
}

function nameOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, MAX_NAME_LENGTH) : '';
}

function unsound(what: string, value: unknown): TroupeError {
  const kind = value === null ? 'null' : Array.isArray(value) ? 'a list' : typeof value;
  return invalid(`${what} in the answer is ${kind}, and no text`);
}

function invalid(message: string): TroupeError {
  return new TroupeError('provider_invalid_reply', message);
}
