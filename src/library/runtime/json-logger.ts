import { type DestinationStream, pino } from 'pino';
import { LOG_LEVELS, type LogCode, type Logger, type LogLevel } from '../../base/logger.ts';

const STDERR = 2;

const MESSAGES: Record<LogCode, string> = {
  turn_started: 'turn started',
  turn_done: 'turn done',
  turn_failed: 'turn failed',
  turn_aborted: 'turn stopped',
  turn_left: 'turn left to another process',
  model_call_failed: 'model call failed',
  warning: 'warning',
  request_failed: 'request failed',
};

/** Writes lines of JSON, by default to stderr. Writing is synchronous: the last lines of a process matter most. */
export function createJsonLogger(
  level: LogLevel,
  destination: DestinationStream = pino.destination({ dest: STDERR, sync: true }),
): Logger {
  const lines = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  );
  const most = LOG_LEVELS.indexOf(level);
  return {
    isOn: (asked) => LOG_LEVELS.indexOf(asked) <= most,
    write(at, code, ids, facts) {
      lines[at]({ code, ...ids, ...facts }, MESSAGES[code]);
    },
  };
}
