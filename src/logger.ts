import type { ErrorCode } from './errors.ts';

/**
 * What a process tells its operator in lines. A closed list of codes, each with the same ids as the log and the page.
 *  L1  Methods never wait and never throw.
 *  L2  No line holds words of people, models or tools: they are in the log, under these ids.
 */
export interface Logger {
  /** Whether lines of this level are written: making one costs more than asking. */
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
  /** This process stopped working on it; whoever holds the actor next goes on. */
  | 'turn_left'
  | 'model_call_failed'
  | 'warning'
  | 'request_failed';

/** As in events and addresses of the page. */
export interface LogIds {
  tenant?: string;
  conversation?: string;
  agent?: string;
  turn?: string;
  /** Of the newest event that the turn answers. */
  seq?: number;
  /** Which process writes: the one that the lease of an actor names. */
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
  /** What was under way. */
  where?: string;
  message?: string;
}
