import {
  checkCall,
  checkFailure,
  checkName,
  checkReasoning,
  checkStop,
  checkText,
  checkUsage,
  createPieceCheck,
  isFailureCode,
  unexpected,
} from './check-event.ts';
import { classifyFailure, shownMessage, vendorErrorOf } from './classify-failure.ts';
import type { ModelEvent, ModelFailure, ModelRequest, Provider, ProviderCapabilities } from './provider.ts';
import { wholeCalls } from './whole-calls.ts';
import { ThoughtSplitter } from './thoughts.ts';
import type { Reasoning, ToolCall } from '../events/index.ts';
import { limitsFor, type ReplyLimits, ReplyMeter, replyTooLong } from './reply-limits.ts';
import { type MarkFamily, MarkRestorer, restoredCall, withPlainMarks } from './template-marks.ts';
import type { ToolRules } from './tool-schema.ts';
import { ownFailure } from './vendor-fetch.ts';
import { withFittedTools } from './fit-tools.ts';

/** The guard's side of an adapter's reader. */
export interface StreamWatch {
  /** Ends the vendor's request. */
  signal: AbortSignal;
  /** Called by the reader for every chunk, including those without an event. */
  touch: () => void;
  /** Counts what the reader buffers: reasoning, arguments, calls. The guard counts text itself. */
  meter: ReplyMeter;
}

interface GuardOptions {
  /** Of the provider. */
  name: string;
  /** What the model is asked. */
  request: ModelRequest;
  /** Ends the stream with `aborted`. */
  signal: AbortSignal;
  /** Of one answer. */
  limits: ReplyLimits;
  /** The provider remembers the conversation. */
  remembers?: boolean;
  /**
   * Yields text, reasoning, calls and `done` or `failed`. May throw, and may end early where the vendor's stream did.
   */
  read: (watch: StreamWatch) => AsyncIterable<ModelEvent>;
  /** Removed from messages: vendors put parts of a request into their errors. */
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
    /** How the vendor wants tools. Absent: as they are. */
    tools?: ToolRules | undefined;
  }): Provider['stream'] {
  return (asked, { signal }) => {
    const { request, restore } = withFittedTools(withPlainMarks(asked, templateMarks), tools);
    const stream = restore(guardStream({ ...parts, request, signal, read: (watch) => read(request, watch) }));
    return templateMarks.length === 0 ? stream : withMarksRestored(stream, templateMarks);
  };
}

/** The model's words and calls as they were meant. Pieces of calls come between words without ending them. */
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
 * Holds an adapter to the contract of the provider port, whatever its SDK and vendor do. SDKs end quietly on an abort
 * or a cut connection, and may never settle; vendors may send anything, of any length. So the abort races the stream
 * instead of being passed on and trusted, and each event is validated.
 */
async function* guardStream(options: GuardOptions): AsyncGenerator<ModelEvent> {
  const { signal, remembers, read, secrets } = options;
  // An answer of a provider with a memory includes all text between its own tool calls, beyond `maxOutputTokens`.
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
      // Armed only while we wait: a slow consumer is not a silent vendor.
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

/** Made once: an abort without a reason makes an error with its stack. */
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
 * Validates the events of an adapter: their order, types of texts, lengths of names, a plausible usage. Returns those to be
 * passed on. Calls wait for the end, which says whether they are whole; the calls of a session are its program's own matter.
 * Pieces have a meter of their own, or what they say would count twice.
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

  /** Thoughts in tags stand beside those that the vendor tells apart. What is signed stays as it is. */
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

/** The end, with what has become of calls that may not be made, and the others. */
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
  // Calls were announced, and the server has lost them.
  const lost = isEmpty && !hasSpoken && end.stop === 'calls' ? '' : undefined;
  const broken = cut ?? end.broken ?? (end.stop === 'refusal' ? undefined : unfinished) ?? lost;
  const stop = isCut ? 'length' : isEmpty && end.stop === 'calls' ? 'end' : end.stop;
  const whole = calls.map((call): ModelEvent => ({ type: 'call', call }));
  return [{ ...end, stop, ...(broken !== undefined && { broken }) }, ...whole];
}

type Done = Extract<ModelEvent, { type: 'done' }>;

/** Nothing came, for a reason that nobody here knows: people have to see it. */
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

/** Vendors count tools: Anthropic and OpenAI from `tools.0` on, Gemini within `function_declarations`. */
const COUNTS = [/function_declarations\[(\d{1,4})\]/, /\btools?[.[](\d{1,4})(?!\d)/];

/** A failure that counts a tool says its name too. */
function namingTool(failure: ModelFailure, tools: ModelRequest['tools']): ModelFailure {
  const [, index] = COUNTS.map((count) => count.exec(failure.message)).find(Boolean) ?? [];
  const name = index === undefined ? undefined : tools[Number(index)]?.name;
  if (name === undefined || failure.message.includes(name)) return failure;
  return { ...failure, message: `${failure.message} (the tool "${name}")` };
}

/** The end of the stream was already reported; a later outcome of the SDK changes nothing. */
function ignore(): void {}
