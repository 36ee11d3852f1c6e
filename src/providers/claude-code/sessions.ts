import { randomUUID } from 'node:crypto';
import type { Clock } from '../../clock.ts';
import type { ModelFailure, ModelRequest, SessionChange, SessionMark } from '../provider.ts';
import type { CliProcess } from './cli-process.ts';
import { type Launch, type SessionStart, shortHash } from './launch.ts';
import type { Processes } from './processes.ts';
import { type PromptBlock, promptBlocks } from './prompt-blocks.ts';
import type { ToolMessage } from './tool-server.ts';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { makePrivateDir } from '../../private-files.ts';

export interface SessionsOptions {
  processes: Processes;
  /** Where the instructions of sessions are kept. */
  home: string;
  clock: Clock;
  idleMs: number;
  maxProcesses: number;
}

/** A turn that can be read. `change` is null where it goes on. */
export interface OpenTurn {
  process: CliProcess;
  change: SessionChange | null;
}

/** How a stream ended, as far as its session is concerned. */
export type TurnEnd =
  | { kind: 'waits' }
  | { kind: 'done'; mark: NonNullable<Seat['at']> }
  | { kind: 'broken' };

/**
 * The sessions of one provider, each with a process of its own while it is in use.
 * 1. A process is used again only after a turn that ended well; after any other it is stopped, and another one takes the
 *    session back when it is resumed. The CLI keeps what it was told in a turn that broke off.
 * 2. More than `maxProcesses` run only while all of them are within a turn: turns may wait for each other.
 * Callers see to it that a seat has one turn at a time.
 */
export interface Sessions {
  seat(cacheKey: string): Seat;
  begin(seat: Seat, request: ModelRequest): Promise<OpenTurn | ModelFailure>;
  settle(seat: Seat, end: TurnEnd): void;
  leave(cacheKey: string): void;
}

export function createSessions({ processes, home, clock, idleMs, maxProcesses }: SessionsOptions): Sessions {
  const personas = openPersonaFile(home);
  const seats = new Map<string, Seat>();
  let uses = 0;

  async function resume(seat: Seat, request: ModelRequest, mark: NonNullable<Seat['at']>) {
    const { system, blocks } = promptBlocks(request);
    const persona = system || personas.read(request.cacheKey, mark.id);
    if (persona === null) return lost(`the instructions of session ${mark.id} are not known here`);
    const launch = launchOf(request, persona);
    const isWarm = isIdle(seat) && endedAt(seat, mark) && seat.launch === hashOf(launch);
    const change = isWarm ? 'warm' : wentBeyond(seat, mark) ? 'rewound' : 'resumed';
    const open = isWarm ? seat.process : null;
    const process = open ?? (await start(seat, request, { launch, session: { kind: 'resume', mark } }));
    return run(seat, { process, change }, { id: mark.id, blocks });
  }

  async function startNew(seat: Seat, request: ModelRequest): Promise<OpenTurn> {
    const { system, blocks } = promptBlocks(request);
    const id = randomUUID();
    const launch = launchOf(request, system);
    const process = await start(seat, request, { launch, session: { kind: 'new', id } });
    personas.write(request.cacheKey, { session: id, system });
    return run(seat, { process, change: 'started' }, { id, blocks });
  }

  async function start(
    seat: Seat,
    { cacheKey }: ModelRequest,
    { launch, session }: { launch: Launch; session: SessionStart },
  ): Promise<CliProcess> {
    // Two processes on one session would lose what either of them says.
    await rest(seat);
    makeRoom();
    const process = await processes.start(launch, session, cacheKey);
    Object.assign(seat, { process, launch: hashOf(launch) } satisfies Partial<Seat>);
    void process.exited.then(() => {
      if (seat.process !== process) return;
      seat.process = null;
      seat.idle.abort();
    });
    return process;
  }

  function run(
    seat: Seat,
    turn: OpenTurn,
    { id, blocks }: { id: string; blocks: readonly PromptBlock[] },
  ): OpenTurn {
    Object.assign(seat, { turn: 'running', beyond: id } satisfies Partial<Seat>);
    turn.process.tools.reset();
    turn.process.send(blocks);
    return turn;
  }

  function goOn(seat: Seat, { messages }: ModelRequest): OpenTurn | ModelFailure {
    const { process } = seat;
    if (seat.turn !== 'waiting' || !process?.isAlive) return lost('no turn is open that waits for results');
    seat.turn = 'running';
    process.tools.answer(messages.filter((message): message is ToolMessage => message.role === 'tool'));
    return { process, change: null };
  }

  function makeRoom(): void {
    const idle = [...seats.values()].filter(isIdle).toSorted((a, b) => a.used - b.used);
    const surplus = processes.count + 1 - maxProcesses;
    for (const seat of idle.slice(0, Math.max(0, surplus))) void rest(seat);
  }

  /** Its process is not needed for now. */
  async function rest(seat: Seat): Promise<void> {
    seat.idle.abort();
    await seat.process?.stop();
  }

  async function restWhenIdle(seat: Seat): Promise<void> {
    const { signal } = (seat.idle = new AbortController());
    if (!seat.process) return;
    await clock.sleep(idleMs, signal);
    if (!signal.aborted) await rest(seat);
  }

  return {
    seat(cacheKey) {
      const seat = seats.get(cacheKey) ?? newSeat();
      seats.set(cacheKey, seat);
      return seat;
    },
    async begin(seat, request) {
      seat.idle.abort();
      seat.used = uses += 1;
      if (request.session?.kind === 'continue') return goOn(seat, request);
      if (request.session?.kind === 'resume') return await resume(seat, request, request.session.mark);
      return await startNew(seat, request);
    },
    settle(seat, end) {
      seat.turn = end.kind === 'waits' ? 'waiting' : 'none';
      if (end.kind === 'broken') void rest(seat);
      if (end.kind !== 'done') return;
      Object.assign(seat, { at: end.mark, beyond: null } satisfies Partial<Seat>);
      void restWhenIdle(seat);
    },
    leave(cacheKey) {
      const seat = seats.get(cacheKey);
      if (seat?.turn !== 'waiting') return;
      seat.turn = 'none';
      void rest(seat);
    },
  };
}

export function launchOf({ model, tools, maxOutputTokens }: ModelRequest, system: string): Launch {
  return { model, tools, maxOutputTokens, system };
}

function hashOf(launch: Launch): string {
  return shortHash(JSON.stringify(launch));
}

function lost(message: string): ModelFailure {
  return { code: 'provider_session_lost', message };
}

/**
 * The instructions of each cache key's latest session. Claude Code is told them at every start, and a request that
 * resumes a session does not bring them. Without them the session counts as lost.
 */
const Persona = z.object({ session: z.string(), system: z.string() });

interface PersonaFile {
  write(cacheKey: string, persona: z.infer<typeof Persona>): void;
  /** Null if that session is not the latest, or was not begun here. */
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
        // Missing, or cut off by a crash: a new session costs less than a wrong persona.
        return null;
      }
    },
  };
}

/** What is known of one cache key's session, and the process that has it open. */
interface Seat {
  process: CliProcess | null;
  /** What the process was started for, as a hash. */
  launch: string;
  /** `waiting`: for results of calls. */
  turn: 'none' | 'running' | 'waiting';
  /** Where the last turn ended that ended well, as far as is known here. */
  at: SessionMark | null;
  /** The session that has more in it than its last mark says, or may have. */
  beyond: string | null;
  /** Order of use, over all seats. */
  used: number;
  /** Ends the wait for being idle too long. */
  idle: AbortController;
  /** Resolves when the last stream is over. */
  free: Promise<void>;
}

function newSeat(): Seat {
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

function isIdle({ process, turn }: Seat): boolean {
  return turn === 'none' && (process?.isAlive ?? false);
}

/** Whether the last turn that ended well did so at the mark. */
function endedAt({ at }: Seat, mark: SessionMark): boolean {
  return at?.id === mark.id && at.checkpoint === mark.checkpoint;
}

/** Whether the session is known to hold more than the mark says. */
function wentBeyond({ at, beyond }: Seat, mark: SessionMark): boolean {
  return beyond === mark.id || (at?.id === mark.id && at.checkpoint !== mark.checkpoint);
}
