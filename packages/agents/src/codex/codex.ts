import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import {
  type Clock,
  guardedStream,
  makePrivateDir,
  type ModelEvent,
  type ModelRequest,
  type Provider,
  replyLimits,
  type ReplyLimitSettings,
  type StreamWatch,
  systemClock,
  type SessionChange,
  type SessionMark,
  type ToolSpec,
  TroupeError,
} from '../troupe.ts';
import { WITH_SESSIONS } from '../programs.ts';
import { type AppServer, startAppServer } from './app-server.ts';
import { codexEnv, codexHome, type CodexSettings, findCodex, NAME, writeHome } from './config.ts';
import { flattenMessages } from '../flatten-messages.ts';
import { Thread, type ThreadOptions } from './thread.ts';

/** Settings of Codex, its process and limits. */
export interface CodexOptions extends CodexSettings {
  /** Source of time. Default: the system clock. */
  clock?: Clock;
  /** Time for the program to become ready, ms. */
  startTimeoutMs?: number;
  /** Limits of the size and duration of an answer. One of Codex's own tools may run for long without output. */
  replyLimits?: ReplyLimitSettings;
}

/** Special tokens of OpenAI's models, and Codex's own tags. */
const MARKS = ['tokens', 'clients'] as const;

const START_TIMEOUT_MS = 30_000;

/**
 * OpenAI's Codex CLI as a stateful provider: one `codex app-server` process, started with the first request, and again after
 * it died. Each session is one of its threads. `maxOutputTokens` has no effect.
 */
export function createCodex(options: CodexOptions): Provider {
  const { clock = systemClock, startTimeoutMs = START_TIMEOUT_MS } = options;
  const limits = replyLimits(options.replyLimits);
  const work = options.cwd ?? join(options.home, 'work');
  const secrets = options.apiKey === undefined ? [] : [options.apiKey];
  let running: Promise<{ server: AppServer; sessions: Sessions }> | null = null;

  function run(): NonNullable<typeof running> {
    if (running) return running;
    const started = start();
    running = started;
    const forget = () => {
      if (running === started) running = null;
    };
    started.then(({ server }) => server.ended.then(forget), forget);
    return started;
  }

  /** Checks that the process has not ended: its end is known before all of its output was read. */
  async function alive(): NonNullable<typeof running> {
    const found = await run();
    if (found.server.isAlive) return found;
    await found.server.ended;
    return run();
  }

  async function start(): Promise<{ server: AppServer; sessions: Sessions }> {
    const codex = findCodex();
    const dir = writeHome(options);
    const env = codexEnv(options, dir);
    const server = await startAppServer({ codex, env, cwd: dir, clock, startTimeoutMs, limits });
    const hasShell = options.builtinTools.includes('shell');
    const sessions = new Sessions({
      server,
      clock,
      sandbox: options.sandbox,
      hasShell,
      secrets,
      cwdOf: (cacheKey) => cwdOf(options, work, cacheKey),
      limits,
    });
    return { server, sessions };
  }

  async function* read(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    const { sessions } = await alive();
    yield* sessions.stream(request, watch);
  }

  return {
    name: NAME,
    capabilities: { ...WITH_SESSIONS, templateMarks: MARKS },
    home: `${hostname()}:${codexHome(options)}:${work}`,
    cwdOf: (cacheKey) => cwdOf(options, work, cacheKey),
    stream: guardedStream({ name: NAME, limits, remembers: true, secrets, templateMarks: MARKS, read }),
    leave: (cacheKey) =>
      void running?.then(
        ({ sessions }) => sessions.leave(cacheKey),
        () => {},
      ),
    async close() {
      const stopping = running;
      running = null;
      const { server } = (await stopping?.catch(() => null)) ?? {};
      await server?.close();
    },
  };
}

function cwdOf({ cwd }: CodexOptions, work: string, cacheKey: string): string {
  const own = createHash('sha256').update(cacheKey).digest('hex').slice(0, 16);
  const dir = cwd ?? join(work, own);
  makePrivateDir(dir);
  return dir;
}

/** Most threads that the process keeps in memory. Idle ones can be resumed from disk. */
const MAX_THREADS = 64;

/** The loaded threads of one process, and the current thread of each cache key. */
class Sessions {
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
      // The signal also aborts when the stream ends, and a turn that waits for results must outlive its stream.
      if (ends) signal.removeEventListener('abort', stop);
      const turn = event.type === 'done' ? markedTurn(event, thread) : null;
      yield turn === null ? event : { ...event, session: markOf(thread.id, turn, request.tools) };
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
    // Codex fixes a thread's tools when the thread begins.
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

/** The turn after which the thread can be resumed; null if it must be rewound to an earlier one. */
function markedTurn({ stop }: Extract<ModelEvent, { type: 'done' }>, { leaf, last }: Thread): string | null {
  if (stop === 'calls') return last;
  return stop === 'end' ? leaf : null;
}

/** A mark of the last turn that counts, and of the tools with which the session began. */
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
