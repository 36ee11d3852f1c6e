import type { ErrorCode } from './errors.ts';

/**
 * The log lines of a process. The list of codes is closed; lines have the same ids as the event log and the web page.
 *  L1  Methods never wait and never throw.
 *  L2  No line contains text of people, models or tools. The event log has it, under these ids.
 */
export interface Logger {
  /** Whether lines of this level are written. Asking is cheaper than preparing a line. */
  isOn(level: LogLevel): boolean;
  write(level: LogLevel, code: LogCode, ids: LogIds, facts?: LogFacts): void;
}

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export type LogCode =
  | 'turn_started'
  | 'turn_done'
  | 'turn_failed'
  | 'turn_aborted'
  /** This process stopped working on the turn; the next holder of the actor resumes it. */
  | 'turn_left'
  | 'model_call_failed'
  | 'warning'
  | 'request_failed';

/** The ids of events, as in the addresses of the web page. */
export interface LogIds {
  tenant?: string;
  conversation?: string;
  agent?: string;
  turn?: string;
  /** Seq of the newest event that the turn answers. */
  seq?: number;
  /** Id of the writing process, as in leases. */
  process?: string;
}

export interface LogFacts {
  ms?: number;
  waitMs?: number;
  attempt?: number;
  steps?: number;
  inputTokens?: number;
  outputTokens?: number;
  cacheReadTokens?: number;
  provider?: string;
  error?: ErrorCode | (string & {});
  /** The operation under way. */
  where?: string;
  message?: string;
}
