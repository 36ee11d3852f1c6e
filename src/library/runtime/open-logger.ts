import { TroupeError } from '../../base/errors.ts';
import { LOG_LEVELS, type Logger, type LogLevel } from '../../base/logger.ts';
import { guardLogger } from './operators.ts';
import { hideSecrets, namedSecrets } from './secrets.ts';

const SILENT = 'silent';
const LEVELS: readonly string[] = [SILENT, ...LOG_LEVELS];

type Env = Record<string, string | undefined>;

/** A level of log lines, or `silent`. `where` names the setting. Throws `config_invalid`. */
export function readLevel(text: string, where: string): LogLevel | typeof SILENT {
  if (LEVELS.includes(text)) return text as LogLevel | typeof SILENT;
  throw new TroupeError('config_invalid', `${where} must be one of ${LEVELS.join(', ')}, not "${text}"`);
}

/** The level in TROUPE_LOG; undefined if it is not set. Throws `config_invalid`. */
export function levelIn(env: Env): LogLevel | typeof SILENT | undefined {
  const text = env['TROUPE_LOG']?.trim();
  return text ? readLevel(text, 'TROUPE_LOG') : undefined;
}

/** A logger of this level that writes JSON lines to stderr, without secrets of the environment. `silent` also drops warnings. */
export async function openLogger(
  level: LogLevel | typeof SILENT,
  env: Env,
): Promise<{ logger?: Logger; onWarning?: () => void }> {
  if (level === SILENT) return { onWarning: () => {} };
  const { createJsonLogger } = await import('./json-logger.ts');
  return { logger: guardLogger(createJsonLogger(level), hideEnvironment(env)) };
}

/** Hides the secrets of the environment, before the definition can name others. */
export function hideEnvironment(env: Env): (text: string) => string {
  return hideSecrets(namedSecrets(env), [env['MONGODB_URL'], env['POSTGRES_URL'], env['REDIS_URL']]);
}

/** Writes the error of a request that was answered with 500. */
export function reportRequest(logger: Logger | undefined, error: unknown): void {
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  logger?.write('error', 'request_failed', {}, { message });
}
