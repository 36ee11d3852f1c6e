import type { SessionMark } from '../provider.ts';
import type { CliProcess } from './cli-process.ts';

/** What is known of one cache key's session, and the process that has it open. */
export interface Seat {
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

export function newSeat(): Seat {
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

export function isIdle({ process, turn }: Seat): boolean {
  return turn === 'none' && (process?.isAlive ?? false);
}

/** Whether the last turn that ended well did so at the mark. */
export function endedAt({ at }: Seat, mark: SessionMark): boolean {
  return at?.id === mark.id && at.checkpoint === mark.checkpoint;
}

/** Whether the session is known to hold more than the mark says. */
export function wentBeyond({ at, beyond }: Seat, mark: SessionMark): boolean {
  return beyond === mark.id || (at?.id === mark.id && at.checkpoint !== mark.checkpoint);
}
