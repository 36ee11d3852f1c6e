import type { ErrorCode } from './errors.ts';

/**
 * The log lines of a process. The list of codes is closed; lines have the same ids as the event log and the web page.
 *  L1  Methods never wait and never throw.
 *  L2  No line contains text of people, models or tools. The event log has it, under these ids.
 */
export interface Logger {
  /** Whether lines of this level are written. Asking is cheaper than preparing a line. */
  isOn(level: LogLevel): boolean;
  /** Called once per line. Must not throw. */
  write(level: LogLevel, code: LogCode, ids: LogIds, facts?: LogFacts): void;
}

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const;
/** Weight of a line. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** What a line reports. */
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
  /** Id of the tenant. */
  tenant?: string;
  /** Id of the conversation. */
  conversation?: string;
  /** Id of the agent. */
  agent?: string;
  /** Id of the turn. */
  turn?: string;
  /** Seq of the newest event that the turn answers. */
  seq?: number;
  /** Id of the writing process, as in leases. */
  process?: string;
}

/** Facts of a line. */
export interface LogFacts {
  /** How long it took, ms. */
  ms?: number;
  /** How long it waited before, ms. */
  waitMs?: number;
  /** Number of the start or try, from 1. */
  attempt?: number;
  /** Number of model calls. */
  steps?: number;
  /** Tokens of prompts. */
  inputTokens?: number;
  /** Tokens of answers. */
  outputTokens?: number;
  /** Tokens of prompts read from a cache. */
  cacheReadTokens?: number;
  /** Name of the provider. */
  provider?: string;
  /** Code of the error. */
  error?: ErrorCode | (string & {});
  /** The operation under way. */
  where?: string;
  /** What happened, for people. */
  message?: string;
}
