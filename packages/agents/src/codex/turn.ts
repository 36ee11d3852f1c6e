import {
  type Clock,
  type ModelEvent,
  type ModelFailure,
  type PromptMessage,
  type ReplyLimits,
  replyTooLong,
  type ToolCall,
  TroupeError,
} from '../troupe.ts';
import type { AppServer, ToolAnswer } from './app-server.ts';
import {
  failureOf,
  incompleteStop,
  type ToolCallParams,
  TurnAnswer,
  type TurnNote,
  turnNoteOf,
} from './protocol.ts';
import { type TurnEnd, TurnReader } from './turn-reader.ts';

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

/** Codex settles an interrupted turn in about 20 ms. After this time it counts as hung. */
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

  /** Codex waits for results of ours. */
  get isWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  notified(method: string, params: unknown): void {
    try {
      if (method === 'turn/started') this.#id ??= TurnAnswer.parse(params).turn.id;
      const note = turnNoteOf(method, params);
      // After a resume, the thread reports its usage again under an old turn.
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

  /** Passes the results on. A call without one gets `no result`. */
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

  /** Ends the turn, together with the process if it hangs. Resolves when the turn is over. */
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

  /** The events of one step. After `done` with `calls` the turn goes on with `answer` and another step. */
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

  /** False after this much silence; null waits forever. */
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
