import {
  type Clock,
  type ModelEvent,
  type ModelFailure,
  type PromptMessage,
  type ReplyLimits,
  replyTooLong,
  type ToolCall,
  TroupeError,
  addUsage,
  NO_USAGE,
  ReplyMeter,
  type Usage,
} from '../troupe.ts';
import type { AppServer, ToolAnswer } from './app-server.ts';
import {
  failureOf,
  incompleteStop,
  type ToolCallParams,
  TurnAnswer,
  type TurnNote,
  turnNoteOf,
  type TokenCounts,
  type TurnError,
} from './protocol.ts';
import { NAME } from './config.ts';

interface TurnOptions {
  server: AppServer;
  clock: Clock;
  threadId: string;
  /** Parameters of `turn/start`, without the thread. */
  start: object;
  /** The thread reports the end of each answer. */
  raw: boolean;
  tools: ReadonlySet<string>;
  secrets: readonly string[];
  limits: ReplyLimits;
  model: string;
}

type Heard = { kind: 'note'; note: TurnNote } | { kind: 'call'; call: ToolCallParams };

/** Time after which an interrupted turn counts as hung, ms. Codex usually settles it in about 20 ms. */
const INTERRUPT_MS = 2000;

/**
 * One turn of a thread. Buffers what Codex sends until a step is read, and owns the calls that wait for a result.
 *
 * 1. A turn ends once: it completes, fails, is interrupted, or its process dies.
 * 2. A step ends in `done` or `failed`. A step that is not read to its end must be interrupted.
 */
export class Turn {
  readonly #options: TurnOptions;
  readonly #reader: TurnReader;
  readonly #heard: Heard[] = [];
  /** Bytes received since the last step was read: an upper bound of the buffer. */
  #received = 0;
  readonly #waiting = new Map<string, PromiseWithResolvers<ToolAnswer>>();
  readonly #over = Promise.withResolvers<void>();
  readonly #started: Promise<string>;
  /** The calls of the last step. More may have arrived since. */
  #stepCalls: readonly ToolCall[] = [];
  #lost: TroupeError | null = null;
  #wake = Promise.withResolvers<void>();
  #interrupting: Promise<void> | null = null;
  #spoke = false;
  #isOver = false;
  #id: string | null = null;

  constructor(options: TurnOptions) {
    this.#options = options;
    this.#reader = new TurnReader(options);
    const { server, threadId, start } = options;
    this.#started = server
      .call('turn/start', { threadId, ...start })
      .then((answer) => TurnAnswer.parse(answer).turn.id);
    this.#started.catch((reason: TroupeError) => this.lost(reason));
  }

  get id(): string | null {
    return this.#id;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Codex is waiting for results of ours. */
  get isWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  notified(method: string, params: unknown): void {
    try {
      if (method === 'turn/started') this.#id ??= TurnAnswer.parse(params).turn.id;
      const note = turnNoteOf(method, params);
      // After a resume, the thread reports its usage again, under an old turn.
      if (!note || note.params.turnId !== this.#id) return;
      this.#hear({ kind: 'note', note });
      if (note.method === 'turn/completed') this.#finish();
    } catch (cause) {
      this.lost(
        new TroupeError('provider_failed', `Codex sent a ${method} that is not understood`, {}, { cause }),
      );
    }
  }

  called(call: ToolCallParams): Promise<ToolAnswer> {
    const answer = Promise.withResolvers<ToolAnswer>();
    this.#waiting.set(call.callId, answer);
    this.#hear({ kind: 'call', call });
    return answer.promise;
  }

  lost(reason: TroupeError): void {
    this.#lost ??= reason;
    this.#finish();
    this.#wake.resolve();
  }

  /** Passes the results on. A call without a result gets `no result`. */
  answer(messages: readonly PromptMessage[]): void {
    const results = new Map(messages.flatMap((each) => (each.role === 'tool' ? [[each.call, each]] : [])));
    for (const { id } of this.#stepCalls) {
      const result = results.get(id);
      const text = result?.content ?? 'no result';
      this.#waiting.get(id)?.resolve({
        success: result !== undefined && !result.failed,
        contentItems: [{ type: 'inputText', text }],
      });
      this.#waiting.delete(id);
    }
  }

  /** Ends the turn, and the process too if it hangs. Resolves when the turn has ended. */
  interrupt(): Promise<void> {
    this.#interrupting ??= this.#interrupt();
    return this.#interrupting;
  }

  async #interrupt(): Promise<void> {
    if (this.#isOver) return;
    const { server, clock, threadId } = this.#options;
    const settled = new AbortController();
    this.#started.then((turnId) => server.call('turn/interrupt', { threadId, turnId })).catch(() => {}); // It was over already, or ends with the process.
    const late = clock.sleep(INTERRUPT_MS, settled.signal).then(() => 'late' as const);
    const first = await Promise.race([this.#over.promise, late]);
    settled.abort();
    if (first !== 'late' || this.#isOver) return;
    server.kill();
    await this.#over.promise;
  }

  /** The events of one step. After `done` with `calls`, `answer` continues the turn with another step. */
  async *step(touch: () => void): AsyncGenerator<ModelEvent> {
    while (true) {
      const heard = this.#heard.shift();
      if (heard) {
        touch();
        for (const event of this.#read(heard)) yield event;
        const { end } = this.#reader;
        if (end) return yield this.#ending(end);
        continue;
      }
      if (this.#lost) return yield { type: 'failed', error: this.#death(this.#lost) };
      const quiet = this.#reader.quietMs;
      if (quiet === 0 || !(await this.#listen(quiet))) {
        const { calls, usage } = this.#reader.endStep();
        this.#stepCalls = calls;
        this.#received = 0;
        for (const call of calls) yield { type: 'call', call };
        return yield { type: 'done', stop: 'calls', usage };
      }
    }
  }

  #read(heard: Heard): ModelEvent[] {
    if (heard.kind === 'call') {
      this.#reader.called(heard.call);
      return [];
    }
    const events = this.#reader.read(heard.note);
    if (events.some(({ type }) => type === 'text')) this.#spoke = true;
    return events;
  }

  #ending(end: TurnEnd): ModelEvent {
    if (end.kind === 'completed') return { type: 'done', stop: 'end', usage: this.#reader.endStep().usage };
    if (end.kind === 'broken') {
      return { type: 'failed', error: { code: 'provider_failed', message: 'Codex broke the turn off' } };
    }
    const stop = incompleteStop(end.error);
    if (stop) return { type: 'done', stop, usage: this.#reader.endStep().usage };
    const { clock, secrets } = this.#options;
    const error = failureOf(end.error, { opened: this.#spoke, now: clock.now(), secrets });
    return { type: 'failed', error };
  }

  #death({ code, message }: TroupeError): ModelFailure {
    if (this.#spoke && code === 'provider_failed') return { code: 'provider_truncated', message };
    return { code: code as ModelFailure['code'], message };
  }

  /** False after this much silence, ms; null waits forever. */
  async #listen(quietMs: number | null): Promise<boolean> {
    this.#wake = Promise.withResolvers<void>();
    if (quietMs === null) {
      await this.#wake.promise;
      return true;
    }
    const heard = new AbortController();
    const quiet = this.#options.clock.sleep(quietMs, heard.signal).then(() => false);
    const first = await Promise.race([this.#wake.promise.then(() => true), quiet]);
    heard.abort();
    return first;
  }

  #hear(heard: Heard): void {
    const { limits } = this.#options;
    if (this.#lost) return;
    this.#received += JSON.stringify(heard).length;
    if (this.#received > limits.receivedBytes) {
      void this.interrupt();
      return this.lost(replyTooLong('receivedBytes', limits));
    }
    this.#heard.push(heard);
    this.#wake.resolve();
  }

  #finish(): void {
    this.#isOver = true;
    const gone = new TroupeError('aborted', 'the turn is over');
    for (const { reject } of this.#waiting.values()) reject(gone);
    this.#waiting.clear();
    this.#over.resolve();
  }
}

type NoteParams<M extends TurnNote['method']> = Extract<TurnNote, { method: M }>['params'];

interface ReaderOptions {
  raw: boolean;
  tools: ReadonlySet<string>;
  model: string;
  limits: ReplyLimits;
}

/** `broken`: interrupted, or ended without a reason. */
type TurnEnd = { kind: 'completed' } | { kind: 'broken' } | { kind: 'failed'; error: TurnError };

/**
 * Reads one turn, step by step, as events of the port. Pure: it knows what happened, not when.
 *
 * Behaviour of Codex 0.169, found by experiment:
 * - It starts a tool as soon as its call is complete, and runs the calls of one answer side by side: all their
 *   requests (`item/tool/call`) wait for us at once. It does not report the end of the answer while they wait.
 * - A thread that began in this process with `experimentalRawEvents` does report the end: `rawResponse/completed`,
 *   with the exact usage. The step ends there. The request of a call may follow shortly after.
 * - A resumed thread has no such event. The step then ends after a short silence: a later call becomes a step
 *   of its own, and the usage of an answer counts for the step in which Codex reports it.
 * - Models that call tools from a program (`exec`) make calls at any time after their answer, so these steps end
 *   after a silence too.
 * - An answer that breaks off after a complete call is reported only after that call was answered.
 */
class TurnReader {
  readonly #raw: boolean;
  readonly #tools: ReadonlySet<string>;
  readonly #model: string;
  #meter: ReplyMeter;
  readonly #sent = new Map<string, number>();
  /** Calls that the model has made, by id, with their arguments as written. */
  readonly #made = new Map<string, string>();
  readonly #asked = new Set<string>();
  #responding = false;
  #speaker: string | null = null;
  /** The part of the reasoning whose piece was yielded last. */
  #thought: string | null = null;
  #calls: ToolCall[] = [];
  #usage = NO_USAGE;
  #total: { seen: Usage; counted: Usage } | null = null;
  #error: TurnError | null = null;
  end: TurnEnd | null = null;

  constructor({ raw, tools, model, limits }: ReaderOptions) {
    this.#meter = new ReplyMeter(limits);
    this.#raw = raw;
    this.#tools = tools;
    this.#model = model;
  }

  /** Silence after which the step ends, ms: 0 ends it now, null never. */
  get quietMs(): number | null {
    if (this.#calls.length === 0) return null;
    if (!this.#raw) return PAUSE_MS;
    if (this.#responding) return STALL_MS;
    if ([...this.#made.keys()].some((id) => !this.#asked.has(id))) return LATE_MS;
    return this.#calls.every(({ id }) => this.#made.has(id)) ? 0 : PAUSE_MS;
  }

  read(note: TurnNote): ModelEvent[] {
    switch (note.method) {
      case 'item/agentMessage/delta':
        this.#responding = true;
        return this.#said(note.params.itemId, note.params.delta);
      case 'item/reasoning/summaryTextDelta':
        return this.#thinks(note.params);
      case 'item/completed':
        return this.#completed(note.params.item);
      case 'rawResponseItem/completed':
        return this.#rawItem(note.params.item);
      case 'rawResponse/completed':
        this.#responding = false;
        if (note.params.usage) this.#usage = addUsage(this.#usage, usageOf(note.params.usage));
        return [];
      case 'thread/tokenUsage/updated':
        if (!this.#raw) this.#counted(note.params.tokenUsage);
        return [];
      case 'error':
        if (!note.params.willRetry) this.#error = note.params.error;
        return [];
      case 'turn/completed':
        this.#turnCompleted(note.params);
        return [];
    }
  }

  /** Codex requests that a tool be run. */
  called({ callId, tool, arguments: args }: ToolCallParams): void {
    this.#meter.call();
    this.#asked.add(callId);
    const made = this.#made.get(callId);
    const said = made ?? JSON.stringify(args ?? {});
    if (made === undefined) this.#meter.arguments(said);
    this.#calls.push({ id: callId, name: tool, args: said });
  }

  /** Ends the step and returns its calls and usage. The next step begins. */
  endStep(): { calls: ToolCall[]; usage: Usage } {
    // Requests for the calls of one answer may arrive in any order.
    const order = [...this.#made.keys()];
    const calls = this.#calls.toSorted((a, b) => order.indexOf(a.id) - order.indexOf(b.id));
    const usage = this.#usage;
    this.#usage = NO_USAGE;
    this.#meter = new ReplyMeter(this.#meter.limits);
    this.#calls = [];
    this.#speaker = null;
    this.#thought = null;
    // A call that was not requested by now may never be, so no later step waits for it.
    for (const id of order) if (!this.#asked.has(id)) this.#made.delete(id);
    return { calls, usage };
  }

  #rawItem({
    type,
    role,
    name,
    call_id: id,
    arguments: args,
  }: NoteParams<'rawResponseItem/completed'>['item']): ModelEvent[] {
    if (type === 'function_call' || type === 'reasoning' || role === 'assistant') this.#responding = true;
    // Codex itself answers calls of tools that are not ours, without a request.
    if (type !== 'function_call' || !id || name === undefined || !this.#tools.has(name) || !isJson(args))
      return [];
    this.#meter.arguments(args);
    this.#made.set(id, args ?? '');
    // Codex reports no pieces of arguments. So that watchers see the call early, all of it is one piece.
    return [{ type: 'calling', id, name, delta: args ?? '' }];
  }

  #thinks({ itemId, summaryIndex, delta }: NoteParams<'item/reasoning/summaryTextDelta'>): ModelEvent[] {
    if (delta === '') return [];
    const part = `${itemId} ${summaryIndex ?? 0}`;
    const apart = this.#thought !== null && this.#thought !== part;
    this.#thought = part;
    return [{ type: 'thinking', delta: apart ? `\n\n${delta}` : delta }];
  }

  #turnCompleted({ status, error: reported }: NoteParams<'turn/completed'>): void {
    const error = reported ?? this.#error;
    if (status === 'completed') this.end = { kind: 'completed' };
    else this.end = error ? { kind: 'failed', error } : { kind: 'broken' };
  }

  #said(itemId: string, delta: string): ModelEvent[] {
    if (delta === '') return [];
    const apart = this.#speaker !== null && this.#speaker !== itemId;
    this.#speaker = itemId;
    this.#sent.set(itemId, (this.#sent.get(itemId) ?? 0) + delta.length);
    return [{ type: 'text', delta: apart ? `\n\n${delta}` : delta }];
  }

  #completed(item: NoteParams<'item/completed'>['item']): ModelEvent[] {
    switch (item.type) {
      case 'agentMessage':
        return this.#said(item.id, (item.text ?? '').slice(this.#sent.get(item.id) ?? 0));
      case 'reasoning': {
        const text = (item.summary?.length ? item.summary : (item.content ?? [])).map(String).join('\n\n');
        return text === ''
          ? []
          : [{ type: 'reasoning', reasoning: { text, provider: NAME, model: this.#model } }];
      }
      case 'contextCompaction':
        return [{ type: 'compacted' }];
      default:
        return [];
    }
  }

  /** Totals cover the whole thread. The usage before this turn is the first total minus its last call. */
  #counted({ total, last }: { total: TokenCounts; last: TokenCounts }): void {
    const seen = usageOf(total);
    this.#total ??= { seen, counted: subtract(seen, usageOf(last)) };
    this.#usage = addUsage(this.#usage, subtract(seen, this.#total.counted));
    this.#total = { seen, counted: seen };
  }
}

/** Longest pause between two calls of one answer, or of one program. */
const PAUSE_MS = 100;
/** Longest waits for the request of a reported call (LATE_MS), and for the rest of an unfinished answer (STALL_MS). */
const LATE_MS = 1000;
const STALL_MS = 10_000;

function usageOf(counts: TokenCounts): Usage {
  return {
    input: counts.inputTokens,
    output: counts.outputTokens,
    cacheRead: counts.cachedInputTokens,
    cacheWrite: counts.cacheWriteInputTokens,
    reasoning: counts.reasoningOutputTokens,
  };
}

function subtract(a: Usage, b: Usage): Usage {
  const less = (field: keyof Usage) => Math.max(0, a[field] - b[field]);
  return {
    input: less('input'),
    output: less('output'),
    cacheRead: less('cacheRead'),
    cacheWrite: less('cacheWrite'),
    reasoning: less('reasoning'),
  };
}

function isJson(text: string | undefined): boolean {
  try {
    JSON.parse(text ?? '');
    return true;
  } catch {
    return false;
  }
}
