import { TroupeError } from '../../errors.ts';
import type { PromptMessage, ToolCall } from '../../events/index.ts';
import type { Clock } from '../../clock.ts';
import type { ModelEvent, ModelFailure } from '../provider.ts';
import { type ReplyLimits, replyTooLong } from '../reply-limits.ts';
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

export interface TurnOptions {
  server: AppServer;
  clock: Clock;
  threadId: string;
  /** Of `turn/start`, without the thread. */
  start: object;
  /** The thread tells when an answer is over. */
  raw: boolean;
  tools: ReadonlySet<string>;
  secrets: readonly string[];
  limits: ReplyLimits;
  model: string;
}

type Heard = { kind: 'note'; note: TurnNote } | { kind: 'call'; call: ToolCallParams };

/** Codex settles an interrupted turn in some 20 ms; what does not do it in this time is taken to hang. */
const INTERRUPT_MS = 2000;

/**
 * One turn of a thread: what Codex says of it is kept until a step is read. It owns the calls that wait for a result.
 *
 * 1. A turn ends once: it is completed, it failed, it was interrupted, or the process died.
 * 2. A step ends in `done` or `failed`, or is not read to its end and then must be interrupted.
 */
export class Turn {
  readonly #options: TurnOptions;
  readonly #reader: TurnReader;
  readonly #heard: Heard[] = [];
  /** Bytes of what was said since the last step was read, and so at most of what waits to be read. */
  #received = 0;
  readonly #waiting = new Map<string, PromiseWithResolvers<ToolAnswer>>();
  readonly #over = Promise.withResolvers<void>();
  readonly #started: Promise<string>;
  /** The calls of the last step: others may have come since. */
  #told: readonly ToolCall[] = [];
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
      // After a resume the thread tells its usage once more, in the name of an old turn.
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

  /** Hands in the results; a call without one is told so. */
  answer(messages: readonly PromptMessage[]): void {
    const results = new Map(messages.flatMap((each) => (each.role === 'tool' ? [[each.call, each]] : [])));
    for (const { id } of this.#told) {
      const result = results.get(id);
      const text = result?.content ?? 'no result';
      this.#waiting.get(id)?.resolve({
        success: result !== undefined && !result.failed,
        contentItems: [{ type: 'inputText', text }],
      });
      this.#waiting.delete(id);
    }
  }

  /** Ends the turn, if it must be with its process. Resolves when it is over. */
  interrupt(): Promise<void> {
    this.#interrupting ??= this.#interrupt();
    return this.#interrupting;
  }

  async #interrupt(): Promise<void> {
    if (this.#isOver) return;
    const { server, clock, threadId } = this.#options;
    const settled = new AbortController();
    this.#started.then((turnId) => server.call('turn/interrupt', { threadId, turnId })).catch(() => {}); // It was over already, or it will be with the process.
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
        this.#told = calls;
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

  /** False when nothing was heard for so long; null waits without end. */
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
