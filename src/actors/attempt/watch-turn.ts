import {
  agentAuthor,
  type Author,
  type PinnedTurn,
  type RunTime,
  type ToolCall,
  type ToolOutcome,
  type TurnTimes,
  type Usage,
  MAX_TIMED_PARTS,
  TimedPart,
  type ActorAddress,
  type PromptMessage,
  type TurnId,
} from '../../events/index.ts';
import type { LogIds } from '../../base/logger.ts';
import type { EffectName } from '../../machines/agent-lifecycle.ts';
import type { TurnPart } from '../../events/metrics.ts';
import type { EngineDeps } from '../actor/engine-deps.ts';
import type { AgentRuntime } from '../actor/agent-runtime.ts';
import type { LiveActor } from '../actor/registry.ts';
import type { AgentProfile } from '../../context/index.ts';
import { toTroupeError } from '../../base/errors.ts';
import type { Span, SpanAttributes } from '../../base/tracing.ts';
import type { Provider, ResponseName } from '../../providers/provider.ts';

/**
 * Reports a turn to operators as metrics, spans and log lines, and measures the time of its parts. The turn never depends on
 * it. Without tracer and logger it only reads clocks and adds numbers.
 */
export interface TurnWatch {
  effect<T>(name: EffectName, work: () => Promise<T>): Promise<T>;
  call(facts: CallFacts): CallWatch;
  tool(call: ToolCall): ToolWatch;
  /** The times of the parts so far, for the end of the turn in the log. Null if all were shorter than half a millisecond. */
  times(): TurnTimes | null;
  /** To be called once, however the turn ended in this process. */
  end(ended: TurnEnded): void;
}

interface TurnEnded {
  ending: { kind: 'done' | 'aborted' } | { kind: 'failed'; code: string };
  usage: Usage;
  /** Index of the last step. */
  step: number;
  answer: unknown;
}

/** Effects whose whole time belongs to one part. `callModel` has several parts. */
const PART_OF: Partial<Record<EffectName, TurnPart>> = {
  assemble: 'build',
  compact: 'relief',
  runCalls: 'tools',
  backOff: 'back_off',
  commit: 'commit',
};

/** Names of the spans of effects. Calls of models and tools have separate spans. */
const SPAN_OF: Partial<Record<EffectName, string>> = {
  assemble: 'build_prompt',
  compact: 'make_room',
  backOff: 'wait_before_retry',
  commit: 'commit',
};

interface WatchedParts {
  deps: EngineDeps;
  runtime: AgentRuntime;
  live: Pick<LiveActor, 'address'>;
  turn: PinnedTurn;
  resumed: boolean;
}

export function watchTurn({ deps, runtime, live: { address }, turn, resumed }: WatchedParts): TurnWatch {
  const { clock, tracer, logger } = deps;
  const { profile } = runtime;
  const times = new PartTimes(clock.monotonic(), Math.round(clock.now()));
  // For a resumed turn the wait was already counted when the turn began.
  const waitMs = resumed || turn.at === undefined ? undefined : Math.max(0, clock.now() - turn.at);
  if (waitMs !== undefined) times.sums.set('wait', waitMs);
  const seq = turn.inputs.at(-1);
  const ids: LogIds = { ...address, turn: turn.id, ...(seq !== undefined && { seq }) };
  const place = { ...address, turn: turn.id, process: deps.process };
  const span = tracer?.span(`invoke_agent ${profile.name}`, {
    kind: 'internal',
    attributes: turnAttributes(profile, place, turn),
  });
  const watched: WatchedTurn = { deps, ids, place, author: agentAuthor(profile), span, times };
  const counted = { attempt: turn.attempt, ...(waitMs !== undefined && { waitMs }) };
  let isCommitted = false;
  if (logger?.isOn('debug')) logger.write('debug', 'turn_started', ids, counted);

  return {
    async effect(name, work) {
      const start = clock.monotonic();
      const called = times.calledMs;
      if (name === 'callModel') times.waiting = start;
      const title = SPAN_OF[name];
      const own = title && tracer?.span(title, { kind: 'internal', attributes: {}, parent: span });
      const outcome = own ? await within(own, work) : await work();
      if (own) own.end();
      isCommitted ||= name === 'commit';
      const end = clock.monotonic();
      const part = PART_OF[name];
      if (part) times.add(part, start, end);
      if (name === 'callModel') times.count('admission', end - start - (times.calledMs - called));
      return outcome;
    },
    call: (facts) =>
      watchCall(
        watched,
        facts.purpose === 'compaction' ? (runtime.summariser ?? runtime).profile : profile,
        facts,
      ),
    tool: (call) => watchTool(watched, call),
    times: () => times.all(),
    end: (ended) => reportEnd(watched, ended, { isCommitted, counted }),
  };
}

/** Reports the end of a turn. A turn that left this process without a commit has the outcome `left` and no times. */
function reportEnd(
  { deps: { clock, metrics, logger }, ids, span, times }: WatchedTurn,
  { ending, usage, step, answer }: TurnEnded,
  { isCommitted, counted }: TurnFigures,
): void {
  const steps = step + (answer ? 1 : 0);
  const ms = clock.monotonic() - times.began;
  const outcome = isCommitted ? ending.kind : 'left';
  const failure = !isCommitted ? 'left' : ending.kind === 'failed' ? ending.code : undefined;
  if (outcome !== 'left') {
    for (const [part, spent] of times.sums) metrics.time('turn_part', { part }, spent);
    metrics.time('turn', { outcome }, ms);
  }
  if (span) {
    span.set({ 'troupe.steps': steps, 'troupe.outcome': outcome });
    span.set(endAttributes({ kind: 'answered', usage }, false));
    span.end(failure);
  }
  const level = failure === undefined ? 'info' : 'warn';
  if (!logger?.isOn(level)) return;
  logger.write(level, `turn_${outcome}`, ids, {
    ms: Math.round(ms),
    ...counted,
    steps,
    inputTokens: usage.input,
    outputTokens: usage.output,
    cacheReadTokens: usage.cacheRead,
    ...(isCommitted && failure !== undefined && { error: failure }),
  });
}

interface TurnFigures {
  isCommitted: boolean;
  counted: { attempt: number; waitMs?: number };
}

interface WatchedTurn {
  deps: Pick<EngineDeps, 'clock' | 'metrics' | 'tracer' | 'logger' | 'redaction'>;
  author: Author;
  ids: LogIds;
  place: SpanPlace;
  span: Span | undefined;
  times: PartTimes;
}

export interface CallWatch {
  /** To be called when the first part of the answer arrives. */
  heard(): void;
  within<T>(work: () => Promise<T>): Promise<T>;
  end(ended: CallEnded): void;
}

interface ToolWatch {
  within<T>(work: () => Promise<T>): Promise<T>;
  /** Ends the span. Returns the time when the tool ran. */
  end(outcome: ToolOutcome, text: string): RunTime;
}

function watchCall(watched: WatchedTurn, profile: AgentProfile, facts: CallFacts): CallWatch {
  const { deps, ids, place, span: parent, times } = watched;
  const { clock, metrics, tracer, logger } = deps;
  const { provider, model } = profile;
  const start = clock.monotonic();
  if (facts.purpose === 'turn') times.asked(start);
  let first: number | null = null;
  const span = tracer?.span(`chat ${model}`, {
    kind: 'client',
    attributes: callAttributes(profile, place, facts, tracer.content),
    parent,
  });
  return {
    heard() {
      if (first !== null) return;
      first = clock.monotonic();
      metrics.time('model_first_token', { provider }, first - start);
    },
    within: (work) => (span ? within(span, work) : work()),
    end(ended) {
      const now = clock.monotonic();
      // The time of a summary counts as compaction.
      if (facts.purpose === 'turn') {
        times.add('first_token', start, first ?? now);
        if (first !== null) times.add('stream', first, now);
      }
      if (ended.kind === 'failed' && logger?.isOn('info')) {
        const { code: error } = ended;
        logger.write('info', 'model_call_failed', ids, { error, provider, ms: Math.round(now - start) });
      }
      if (!span || !tracer) return;
      span.set(endAttributes(tracer.content ? kept(watched, facts, ended) : ended, tracer.content));
      span.end(ended.kind === 'failed' ? ended.code : ended.kind === 'aborted' ? 'aborted' : undefined);
    },
  };
}

function watchTool({ deps, place, author, span: parent }: WatchedTurn, call: ToolCall): ToolWatch {
  const { clock, metrics, tracer } = deps;
  const start = clock.monotonic();
  const at = clock.now();
  const span = tracer?.span(`execute_tool ${call.name}`, {
    kind: 'internal',
    attributes: toolAttributes(call, place, tracer.content),
    parent,
  });
  return {
    within: (work) => (span ? within(span, work) : work()),
    end(outcome, text) {
      const ms = clock.monotonic() - start;
      metrics.time('tool_call', { outcome }, ms);
      if (span && tracer?.content) {
        const result = deps.redaction?.text(text, { kind: 'tool.result', author }) ?? text;
        span.set({ 'gen_ai.tool.call.result': result });
      }
      span?.end(outcome === 'done' || outcome === 'waiting' ? undefined : outcome);
      return { at: Math.round(at), ms: Math.round(ms) };
    },
  };
}

/** Redacts texts as for the log, because text that must not be stored must not be traced either. */
function kept(
  { deps: { redaction }, author }: WatchedTurn,
  { purpose }: CallFacts,
  ended: CallEnded,
): CallEnded {
  if (!redaction || ended.kind !== 'answered') return ended;
  const { text = '', calls = [] } = ended;
  const kind = purpose === 'compaction' ? 'compaction' : calls.length > 0 ? 'step' : 'message';
  const where = { kind, author } as const;
  const made = calls.map((call) => ({ ...call, args: redaction.json(call.args, where) }));
  return { ...ended, text: redaction.text(text, where), calls: made };
}

/** Ends the span if the work throws; otherwise the caller ends it. */
async function within<T>(span: Span, work: () => Promise<T>): Promise<T> {
  try {
    return await span.within(work);
  } catch (error) {
    span.end(toTroupeError(error).code);
    throw error;
  }
}

/** The times of a turn's parts: sums, and each part in the order of the ends. All arguments are monotonic times, ms. */
class PartTimes {
  readonly sums = new Map<TurnPart, number>();
  /** Since when a model call waits before it is sent, monotonic ms; null if none waits. */
  waiting: number | null = null;
  readonly began: number;
  /** The start as ms since the epoch. */
  readonly #from: number;
  readonly #parts: TurnTimes['parts'] = [];

  constructor(began: number, from: number) {
    this.began = began;
    this.#from = from;
  }

  get calledMs(): number {
    return (this.sums.get('first_token') ?? 0) + (this.sums.get('stream') ?? 0);
  }

  count(part: TurnPart, ms: number): void {
    this.sums.set(part, (this.sums.get(part) ?? 0) + Math.max(0, ms));
  }

  add(part: TurnPart, start: number, end: number): void {
    this.count(part, end - start);
    if (TIMED.has(part)) this.#log(part as TimedPart, start, end);
  }

  /** To be called when the request is sent to the model. */
  asked(at: number): void {
    if (this.waiting !== null) this.#log('admission', this.waiting, at);
    this.waiting = null;
  }

  all(): TurnTimes | null {
    return this.#parts.length === 0 ? null : { from: this.#from, parts: [...this.#parts] };
  }

  #log(part: TimedPart, start: number, end: number): void {
    const ms = Math.round(end - start);
    if (ms > 0 && this.#parts.length < MAX_TIMED_PARTS)
      this.#parts.push([part, Math.max(0, Math.round(start - this.began)), ms]);
  }
}

const TIMED: ReadonlySet<string> = new Set(TimedPart.options);

/** The ids of a span, the same as in the log and on the page. */
interface SpanPlace extends ActorAddress {
  turn: TurnId;
  process: string;
}

/** The end of a model call, as a span reports it. */
export type CallEnded =
  | {
      kind: 'answered';
      usage: Usage;
      stop?: string;
      text?: string;
      calls?: readonly ToolCall[];
      response?: ResponseName;
    }
  | { kind: 'failed'; code: string }
  | { kind: 'aborted' };

/** Names of providers in the OpenTelemetry conventions. Other providers keep their own names. */
const PROVIDER_NAMES: Readonly<Record<string, string>> = { 'claude-code': 'anthropic', codex: 'openai' };
const FINISH_REASONS: Readonly<Record<string, string>> = {
  end: 'stop',
  calls: 'tool_call',
  length: 'length',
  refusal: 'content_filter',
};

interface CallFacts {
  purpose: 'turn' | 'compaction';
  /** Number of the step, from 1. */
  step: number;
  /** Number of tries of the same request, this one included. */
  tries: number;
  messages: readonly PromptMessage[];
  server?: Provider['server'];
}

type Modelled = Pick<AgentProfile, 'id' | 'name' | 'provider' | 'model' | 'maxOutputTokens'>;

function turnAttributes(profile: Modelled, place: SpanPlace, turn: PinnedTurn): SpanAttributes {
  const seq = turn.inputs.at(-1);
  return {
    'gen_ai.operation.name': 'invoke_agent',
    ...modelAttributes(profile),
    ...placeAttributes(place),
    'gen_ai.agent.name': profile.name,
    'troupe.attempt': turn.attempt,
    'troupe.process': place.process,
    ...(seq !== undefined && { 'troupe.event.seq': seq }),
  };
}

function callAttributes(
  profile: Modelled,
  place: SpanPlace,
  { purpose, step, tries, messages, server }: CallFacts,
  content: boolean,
): SpanAttributes {
  return {
    'gen_ai.operation.name': 'chat',
    ...modelAttributes(profile),
    ...placeAttributes(place),
    'gen_ai.request.max_tokens': profile.maxOutputTokens,
    ...(server && { 'server.address': server.address, 'server.port': server.port }),
    'troupe.step': step,
    'troupe.call': tries,
    'troupe.purpose': purpose,
    ...(content && { 'gen_ai.input.messages': JSON.stringify(messages.map(messageOf)) }),
  };
}

function toolAttributes({ id, name, args }: ToolCall, place: SpanPlace, content: boolean): SpanAttributes {
  return {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': name,
    'gen_ai.tool.call.id': id,
    'gen_ai.tool.type': 'function',
    ...placeAttributes(place),
    ...(content && { 'gen_ai.tool.call.arguments': args }),
  };
}

function endAttributes(ended: CallEnded, content: boolean): SpanAttributes {
  if (ended.kind !== 'answered') return {};
  const { usage, stop, text = '', calls = [], response } = ended;
  const reason = FINISH_REASONS[stop ?? ''];
  return {
    'gen_ai.usage.input_tokens': usage.input,
    'gen_ai.usage.output_tokens': usage.output,
    'gen_ai.usage.cache_read.input_tokens': usage.cacheRead,
    'gen_ai.usage.cache_creation.input_tokens': usage.cacheWrite,
    ...(response?.model !== undefined && { 'gen_ai.response.model': response.model }),
    ...(response?.id !== undefined && { 'gen_ai.response.id': response.id }),
    ...(reason !== undefined && { 'gen_ai.response.finish_reasons': [reason] }),
    ...(content && {
      'gen_ai.output.messages': JSON.stringify([
        { role: 'assistant', parts: partsOf(text, calls), finish_reason: reason ?? 'stop' },
      ]),
    }),
  };
}

function modelAttributes({ provider, model }: Modelled): SpanAttributes {
  return { 'gen_ai.provider.name': PROVIDER_NAMES[provider] ?? provider, 'gen_ai.request.model': model };
}

function placeAttributes({ tenant, conversation, agent, turn }: SpanPlace): SpanAttributes {
  return {
    'gen_ai.agent.id': agent,
    'gen_ai.conversation.id': conversation,
    'troupe.tenant': tenant,
    'troupe.conversation': conversation,
    'troupe.turn': turn,
  };
}

function messageOf(message: PromptMessage): Record<string, unknown> {
  if (message.role === 'tool')
    return {
      role: 'tool',
      parts: [{ type: 'tool_call_response', id: message.call, result: message.content }],
    };
  return {
    role: message.role,
    parts: partsOf(message.content, message.role === 'assistant' ? message.calls : []),
  };
}

function partsOf(text: string, calls: readonly ToolCall[] = []): Record<string, unknown>[] {
  const said = text === '' ? [] : [{ type: 'text', content: text }];
  return [...said, ...calls.map(({ id, name, args }) => ({ type: 'tool_call', id, name, arguments: args }))];
}
