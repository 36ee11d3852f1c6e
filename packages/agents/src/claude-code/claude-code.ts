import { hostname } from 'node:os';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import * as z from 'zod';
import {
  type Clock,
  guardedStream,
  type ModelEvent,
  type ModelRequest,
  type Provider,
  replyLimits,
  type ReplyLimitSettings,
  type StreamWatch,
  systemClock,
  makePrivateDir,
  type ModelFailure,
  type SessionChange,
  type SessionMark,
} from '../troupe.ts';
import { WITH_SESSIONS } from '../programs.ts';
import { type AgentSdk, loadAgentSdk, promptBlocks, type PromptBlock } from './agent-sdk.ts';
import {
  type ClaudeCodeSettings,
  configDir,
  workDir,
  type Launch,
  type SessionStart,
  shortHash,
  createProcesses,
  type Processes,
  type CliProcess,
} from './processes.ts';
import { readTurn, type ReadTurnOptions } from './read-turn.ts';
import type { ToolMessage } from './tool-server.ts';

/** Settings of Claude Code, its processes and limits. */
export interface ClaudeCodeOptions extends ClaudeCodeSettings {
  /** Source of time. Default: the system clock. */
  clock?: Clock;
  /** Time until the process of an unused session is closed. Default 300,000 ms. */
  idleMs?: number;
  /** Most processes. Beyond it, the one that was idle longest is closed. Each takes about 200 MB. Default 8. */
  maxProcesses?: number;
  /** Time for the program to become ready, ms. */
  startTimeoutMs?: number;
  /**
   * Limits of the size and duration of an answer. While one of its own tools runs, the program reports every 30 s that it is
   * alive.
   */
  replyLimits?: ReplyLimitSettings;
}

const NAME = 'claude-code';
/** The same as for Anthropic's API. */
const MARKS = ['speakers', 'clients'] as const;
const IDLE_MS = 300_000;
const MAX_PROCESSES = 8;
const START_TIMEOUT_MS = 30_000;

/**
 * Claude Code as a stateful provider: one session per cache key, held by a process that stays open between turns. It is sent
 * only messages that it has not seen. After a turn that broke off, the session is rewound to its mark.
 */
export function createClaudeCode(options: ClaudeCodeOptions): Provider {
  const { clock = systemClock, idleMs = IDLE_MS, maxProcesses = MAX_PROCESSES } = options;
  const { startTimeoutMs = START_TIMEOUT_MS } = options;
  const limits = replyLimits(options.replyLimits);
  const secrets = options.apiKey === undefined ? [] : [options.apiKey];
  let sdk: AgentSdk | undefined;
  const loadSdk = async () => (sdk ??= await loadAgentSdk());
  const processes = createProcesses({ loadSdk, settings: options, startTimeoutMs, limits });
  const sessions = new Sessions({ processes, home: options.home, clock, idleMs, maxProcesses });

  /** Ends the process if the reader leaves. Settles the slot before the last event, because the reader may stop there. */
  async function* readInSession(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    const slot = sessions.slot(request.cacheKey);
    const before = slot.free;
    const mine = Promise.withResolvers<void>();
    slot.free = mine.promise;
    let isOver = false;
    const end = (how: TurnEnd) => {
      if (!isOver) sessions.settle(slot, how);
      isOver = true;
      mine.resolve();
    };
    try {
      await before;
      if (watch.signal.aborted) {
        // Nothing was sent, so the session is unchanged.
        isOver = true;
        return;
      }
      const turn = await sessions.begin(slot, request);
      if ('code' in turn) {
        end({ kind: 'broken' });
        return yield { type: 'failed', error: turn };
      }
      for await (const event of read(request, watch, turn)) {
        if (isLast(event)) end(endOf(event));
        yield event;
      }
    } finally {
      end({ kind: 'broken' });
    }
  }

  /** Answers outside of all sessions, and leaves no trace in them. */
  async function* readOnce(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    const { system, blocks } = promptBlocks(request);
    const process = await processes.start(launchOf(request, system), { kind: 'none' }, request.cacheKey);
    try {
      process.send(blocks);
      yield* read(request, watch, { process, change: null });
    } finally {
      void process.stop();
    }
  }

  function read(request: ModelRequest, watch: StreamWatch, turn: OpenTurn): AsyncGenerator<ModelEvent> {
    const version = sdk?.version ?? '';
    return readStoppable({ ...turn, request, provider: NAME, version, secrets, watch }, watch.signal);
  }

  return {
    name: NAME,
    capabilities: { ...WITH_SESSIONS, templateMarks: MARKS },
    home: `${hostname()}:${configDir(options)}:${options.cwd ?? join(options.home, 'work')}`,
    cwdOf: (cacheKey) => workDir(options, cacheKey),
    stream: guardedStream({
      name: NAME,
      limits,
      remembers: true,
      secrets,
      templateMarks: MARKS,
      read: (request, watch) => (request.session ? readInSession(request, watch) : readOnce(request, watch)),
    }),
    leave: (cacheKey) => sessions.leave(cacheKey),
    close: () => processes.close(),
  };
}

/** Reads a turn, and stops its process if the reader leaves before the last event. */
async function* readStoppable(options: ReadTurnOptions, signal: AbortSignal): AsyncGenerator<ModelEvent> {
  const stop = () => void options.process.stop();
  signal.addEventListener('abort', stop);
  if (signal.aborted) stop();
  try {
    for await (const event of readTurn(options)) {
      // The reader aborts the rest of a request after its last event; the process must survive that.
      if (isLast(event)) signal.removeEventListener('abort', stop);
      yield event;
    }
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

function isLast({ type }: ModelEvent): boolean {
  return type === 'done' || type === 'failed';
}

function endOf(event: ModelEvent): TurnEnd {
  if (event.type !== 'done') return { kind: 'broken' };
  const kind = event.stop === 'calls' ? 'waits' : 'done';
  return event.session ? { kind, mark: event.session } : { kind: 'broken' };
}

interface SessionsOptions {
  processes: Processes;
  /** Directory for the instructions of sessions. */
  home: string;
  clock: Clock;
  idleMs: number;
  maxProcesses: number;
}

/** A turn that can be read. `change` is null if the turn continues. */
interface OpenTurn {
  process: CliProcess;
  change: SessionChange | null;
}

/** How a stream ended, from the view of its session. */
type TurnEnd = { kind: 'waits' | 'done'; mark: SessionMark } | { kind: 'broken' };

/**
 * The sessions of one provider, each with a process of its own while it is in use.
 * 1. A process is reused only after a turn that ended well. After any other turn it is stopped, because the CLI keeps
 *    the messages of a broken turn; the next process rewinds the session when it resumes it.
 * 2. More than `maxProcesses` run only while all of them are within a turn, because turns may wait for each other.
 * Callers must ensure that a slot has only one turn at a time.
 */
class Sessions {
  readonly #options: SessionsOptions;
  readonly #personas: PersonaFile;
  readonly #slots = new Map<string, SessionSlot>();
  #uses = 0;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#personas = openPersonaFile(options.home);
  }

  slot(cacheKey: string): SessionSlot {
    const slot = this.#slots.get(cacheKey) ?? newSlot();
    this.#slots.set(cacheKey, slot);
    return slot;
  }

  async begin(slot: SessionSlot, request: ModelRequest): Promise<OpenTurn | ModelFailure> {
    slot.idle.abort();
    slot.used = this.#uses += 1;
    if (request.session?.kind === 'continue') return continueTurn(slot, request);
    if (request.session?.kind === 'resume') return await this.#resume(slot, request, request.session.mark);
    return await this.#startNew(slot, request);
  }

  settle(slot: SessionSlot, end: TurnEnd): void {
    slot.turn = end.kind === 'waits' ? 'waiting' : 'none';
    if (end.kind === 'broken') return void stopProcess(slot);
    Object.assign(slot, { at: end.mark, beyond: null } satisfies Partial<SessionSlot>);
    if (end.kind === 'done') void this.#stopWhenIdle(slot);
  }

  leave(cacheKey: string): void {
    const slot = this.#slots.get(cacheKey);
    if (slot?.turn !== 'waiting') return;
    slot.turn = 'none';
    void stopProcess(slot);
  }

  async #resume(
    slot: SessionSlot,
    request: ModelRequest,
    mark: SessionMark,
  ): Promise<OpenTurn | ModelFailure> {
    const { system, blocks } = promptBlocks(request);
    const persona = system || this.#personas.read(request.cacheKey, mark.id);
    if (persona === null) return lost(`the instructions of session ${mark.id} are not known here`);
    const launch = launchOf(request, persona);
    const isWarm = isIdle(slot) && endedAt(slot, mark) && slot.launch === hashOf(launch);
    const change = isWarm ? 'warm' : wentBeyond(slot, mark) ? 'rewound' : 'resumed';
    // A session that was begun elsewhere gets its instructions with its first request.
    if (system !== '') this.#personas.write(request.cacheKey, { session: mark.id, system });
    const open = isWarm ? slot.process : null;
    const process = open ?? (await this.#start(slot, request, { launch, session: { kind: 'resume', mark } }));
    return run(slot, { process, change }, { id: mark.id, blocks });
  }

  async #startNew(slot: SessionSlot, request: ModelRequest): Promise<OpenTurn> {
    const { system, blocks } = promptBlocks(request);
    const id = randomUUID();
    const launch = launchOf(request, system);
    const process = await this.#start(slot, request, { launch, session: { kind: 'new', id } });
    this.#personas.write(request.cacheKey, { session: id, system });
    return run(slot, { process, change: 'started' }, { id, blocks });
  }

  async #start(
    slot: SessionSlot,
    { cacheKey }: ModelRequest,
    { launch, session }: { launch: Launch; session: SessionStart },
  ): Promise<CliProcess> {
    // Two processes with one session would lose each other's messages.
    await stopProcess(slot);
    this.#makeRoom();
    const process = await this.#options.processes.start(launch, session, cacheKey);
    Object.assign(slot, { process, launch: hashOf(launch) } satisfies Partial<SessionSlot>);
    void process.exited.then(() => {
      if (slot.process !== process) return;
      slot.process = null;
      slot.idle.abort();
    });
    return process;
  }

  #makeRoom(): void {
    const { processes, maxProcesses } = this.#options;
    const idle = [...this.#slots.values()].filter(isIdle).toSorted((a, b) => a.used - b.used);
    const surplus = processes.count + 1 - maxProcesses;
    for (const slot of idle.slice(0, Math.max(0, surplus))) void stopProcess(slot);
  }

  async #stopWhenIdle(slot: SessionSlot): Promise<void> {
    const { clock, idleMs } = this.#options;
    const { signal } = (slot.idle = new AbortController());
    if (!slot.process) return;
    await clock.sleep(idleMs, signal);
    if (!signal.aborted) await stopProcess(slot);
  }
}

function run(
  slot: SessionSlot,
  turn: OpenTurn,
  { id, blocks }: { id: string; blocks: readonly PromptBlock[] },
): OpenTurn {
  Object.assign(slot, { turn: 'running', beyond: id } satisfies Partial<SessionSlot>);
  turn.process.tools.reset();
  turn.process.send(blocks);
  return turn;
}

function continueTurn(slot: SessionSlot, { messages }: ModelRequest): OpenTurn | ModelFailure {
  const { process } = slot;
  if (slot.turn !== 'waiting' || !process?.isAlive) return lost('no turn is open that waits for results');
  Object.assign(slot, { turn: 'running', beyond: slot.at?.id ?? null } satisfies Partial<SessionSlot>);
  process.tools.answer(messages.filter((message): message is ToolMessage => message.role === 'tool'));
  return { process, change: null };
}

async function stopProcess(slot: SessionSlot): Promise<void> {
  slot.idle.abort();
  await slot.process?.stop();
}

function launchOf({ model, tools, maxOutputTokens }: ModelRequest, system: string): Launch {
  return { model, tools, maxOutputTokens, system };
}

function hashOf(launch: Launch): string {
  return shortHash(JSON.stringify(launch));
}

function lost(message: string): ModelFailure {
  return { code: 'provider_session_lost', message };
}

/**
 * The instructions of each cache key's latest session. Claude Code needs them at every start, but a request that resumes a
 * session does not contain them. Without them the session counts as lost.
 */
const Persona = z.object({ session: z.string(), system: z.string() });

interface PersonaFile {
  write(cacheKey: string, persona: z.infer<typeof Persona>): void;
  /** Null if that session is not the latest, or did not begin here. */
  read(cacheKey: string, session: string): string | null;
}

function openPersonaFile(home: string): PersonaFile {
  const dir = join(home, 'sessions');
  const fileOf = (cacheKey: string) => join(dir, `${shortHash(cacheKey)}.json`);
  return {
    write(cacheKey, persona) {
      makePrivateDir(dir);
      writeFileSync(fileOf(cacheKey), JSON.stringify(persona), { mode: 0o600 });
    },
    read(cacheKey, session) {
      try {
        const persona = Persona.parse(JSON.parse(readFileSync(fileOf(cacheKey), 'utf8')));
        return persona.session === session ? persona.system : null;
      } catch {
        // Missing, or incomplete after a crash. A new session costs less than wrong instructions.
        return null;
      }
    },
  };
}

/** The state of one cache key's session, with the process that has it open. */
interface SessionSlot {
  process: CliProcess | null;
  /** Hash of the parameters with which the process was started. */
  launch: string;
  /** `waiting`: the turn waits for results of calls. */
  turn: 'none' | 'running' | 'waiting';
  /** The last mark, as far as this process knows. */
  at: SessionMark | null;
  /** Id of the session if it holds, or may hold, more than its last mark. */
  beyond: string | null;
  /** Order of use across all slots. */
  used: number;
  /** Cancels the idle timeout. */
  idle: AbortController;
  /** Resolves when the last stream is over. */
  free: Promise<void>;
}

function newSlot(): SessionSlot {
  return {
    process: null,
    launch: '',
    turn: 'none',
    at: null,
    beyond: null,
    used: 0,
    idle: new AbortController(),
    free: Promise.resolve(),
  };
}

function isIdle({ process, turn }: SessionSlot): boolean {
  return turn === 'none' && (process?.isAlive ?? false);
}

/** Whether the last turn that ended well ended at this mark. */
function endedAt({ at }: SessionSlot, mark: SessionMark): boolean {
  return at?.id === mark.id && at.checkpoint === mark.checkpoint;
}

/** Whether the session is known to hold more than the mark. */
function wentBeyond({ at, beyond }: SessionSlot, mark: SessionMark): boolean {
  return beyond === mark.id || (at?.id === mark.id && at.checkpoint !== mark.checkpoint);
}
