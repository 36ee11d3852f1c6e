import { toTroupeError } from '../errors.ts';
import type { LogFacts, Logger, LogIds } from '../logger.ts';
import type { Redact } from '../providers/redact.ts';

/** Longer words of an error are more likely to be somebody's than to help. */
const MAX_MESSAGE = 1_000;

/** A logger whose lines hold no secret, and name their process. */
export function guardLogger(logger: Logger, redact: Redact, process?: string): Logger {
  return {
    isOn: (level) => logger.isOn(level),
    write(level, code, ids, facts) {
      if (!logger.isOn(level)) return;
      try {
        const known = process === undefined ? ids : { ...ids, process };
        logger.write(level, code, known, facts && clean(facts, redact));
      } catch {
        // A full disk or a closed pipe must not end a turn, and there is nobody left to tell.
      }
    },
  };
}

function clean(facts: LogFacts, redact: Redact): LogFacts {
  const { message, where } = facts;
  return {
    ...facts,
    ...(where !== undefined && { where: redact(where) }),
    ...(message !== undefined && { message: redact(message).slice(0, MAX_MESSAGE) }),
  };
}

/** Warnings as lines; what an error knows of its place becomes ids. */
export function warnThrough(logger: Logger): (error: unknown, where: string) => void {
  return (thrown, where) => {
    // Some warnings are plain words.
    if (typeof thrown === 'string') return logger.write('warn', 'warning', {}, { where, message: thrown });
    const { code, message, data } = toTroupeError(thrown);
    logger.write('warn', 'warning', idsIn(data), { error: code, where, message });
  };
}

function idsIn(data: Record<string, unknown>): LogIds {
  const names = ['tenant', 'conversation', 'agent', 'turn'] as const;
  const known = names.flatMap((name) => {
    const value = data[name];
    return typeof value === 'string' ? [[name, value] as const] : [];
  });
  return Object.fromEntries(known);
}
