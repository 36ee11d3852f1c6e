import { createHash } from 'node:crypto';
import {
  type ModelEvent,
  type ModelRequest,
  type SessionChange,
  type SessionMark,
  type StreamWatch,
  type ToolSpec,
  TroupeError,
} from '../troupe.ts';
import { flattenMessages } from '../flatten-messages.ts';
import { Thread, type ThreadOptions } from './thread.ts';

/** Threads that the process keeps in memory. Idle ones can be resumed from disk. */
const MAX_THREADS = 64;

/** The loaded threads of one process, and the current thread of each cache key. */
export class Sessions {
  readonly #options: ThreadOptions;
  /** By id, least recently used first. */
  readonly #threads = new Map<string, Thread>();
  readonly #byKey = new Map<string, Thread>();

  constructor(options: ThreadOptions) {
    this.#options = options;
  }

  async *stream(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    const { session, cacheKey } = request;
    if (!session) return yield* this.#once(request, watch);
    if (session.kind === 'continue') {
      const thread = this.#byKey.get(cacheKey);
      if (!thread?.isWaiting) throw lost('no turn waits for these results');
      thread.answer(request.messages);
      return yield* this.#step(thread, request, watch);
    }
    const { thread, change } =
      session.kind === 'start' ? await this.#start(request) : await this.#resume(request, session.mark);
    yield { type: 'session', change, id: thread.id };
    thread.begin(request, flattenMessages(request.messages).texts);
    yield* this.#step(thread, request, watch);
  }

  leave(cacheKey: string): void {
    void this.#byKey.get(cacheKey)?.stop();
  }

  async *#step(thread: Thread, request: ModelRequest, { signal, touch }: StreamWatch) {
    const stop = () => void thread.stop();
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    for await (const event of thread.step(touch)) {
      const ends = event.type === 'done' || event.type === 'failed';
      // The signal also fires when the stream ends, and a turn that waits for results must outlive its stream.
      if (ends) signal.removeEventListener('abort', stop);
      if (event.type !== 'done' || event.stop !== 'end' || thread.leaf === null) yield event;
      else yield { ...event, session: markOf(thread.id, thread.leaf, request.tools) };
    }
  }

  /** A thread for one answer, discarded afterwards. */
  async *#once(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    const thread = await Thread.start(this.#options, request, { ephemeral: true });
    try {
      thread.begin(request, flattenMessages(request.messages).texts);
      for await (const event of this.#step(thread, request, watch)) {
        if (event.type !== 'done') yield event;
        else yield { type: 'done', stop: event.stop, usage: event.usage };
      }
    } finally {
      await thread.unload();
    }
  }

  async #start(request: ModelRequest): Promise<{ thread: Thread; change: SessionChange }> {
    await this.#byKey.get(request.cacheKey)?.stop();
    const thread = await Thread.start(this.#options, request, { ephemeral: false });
    this.#use(thread, request.cacheKey);
    return { thread, change: 'started' };
  }

  async #resume(
    request: ModelRequest,
    mark: SessionMark,
  ): Promise<{ thread: Thread; change: SessionChange }> {
    const { turn, tools } = readCheckpoint(mark.checkpoint);
    // Codex fixes the tools of a thread when it begins.
    if (turn === '' && request.tools.length > 0) throw lost('it was begun without these tools');
    if (tools !== null && tools !== fingerprint(request.tools)) throw lost('the tools have changed');
    const { system } = flattenMessages(request.messages);
    let thread = this.#threads.get(mark.id);
    await thread?.stop();
    if (thread && system !== '' && system !== thread.system) {
      // A loaded thread keeps its instructions.
      this.#threads.delete(mark.id);
      await thread.unload();
      thread = undefined;
    }
    const wasLoaded = thread !== undefined;
    thread ??= await Thread.load(this.#options, request, mark.id);
    this.#use(thread, request.cacheKey);
    if (turn === '') return { thread, change: 'resumed' };
    if (thread.leaf === turn) return { thread, change: 'warm' };
    const dropped = await thread.rewind(turn);
    return { thread, change: dropped ? 'rewound' : wasLoaded ? 'warm' : 'resumed' };
  }

  #use(thread: Thread, cacheKey: string): void {
    this.#threads.delete(thread.id);
    this.#threads.set(thread.id, thread);
    this.#byKey.set(cacheKey, thread);
    for (const idle of this.#threads.values()) {
      if (this.#threads.size <= MAX_THREADS) return;
      if (idle === thread || !idle.isIdle) continue;
      this.#threads.delete(idle.id);
      for (const [key, each] of this.#byKey) if (each === idle) this.#byKey.delete(key);
      void idle.unload();
    }
  }
}

/** The last turn that counts, and the tools that the session began with. */
function markOf(id: string, turn: string, tools: readonly ToolSpec[]): SessionMark {
  return { id, checkpoint: `${turn}.${fingerprint(tools)}` };
}

function readCheckpoint(checkpoint: string): { turn: string; tools: string | null } {
  const [turn = '', tools = null] = checkpoint.split('.');
  return { turn, tools };
}

function fingerprint(tools: readonly ToolSpec[]): string {
  return createHash('sha256').update(JSON.stringify(tools)).digest('hex').slice(0, 12);
}

function lost(why: string): TroupeError {
  return new TroupeError('provider_session_lost', why);
}
