import { inspect } from 'node:util';
import { TroupeError } from '../../base/errors.ts';
import { LOG_LEVELS, type Logger, type LogLevel } from '../../base/logger.ts';
import type { TroupeOptions } from '../../library/runtime/create-troupe.ts';

export interface OperatorFlags {
  logLevel?: string;
}

type Env = Record<string, string | undefined>;

/** Logging and tracing options of long-running processes. */
interface Operators extends Pick<TroupeOptions, 'logger' | 'tracing' | 'onWarning'> {
  /** Receives errors of requests that are answered with 500. */
  onError: (error: unknown) => void;
}

const SILENT = 'silent';
const LEVELS = [SILENT, ...LOG_LEVELS];
/** Environment variables whose values never appear in a log line. */
const SECRET = /KEY|TOKEN|SECRET|PASSWORD|PASSPHRASE|CREDENTIAL|NSEC|BUNKER/i;

/**
 * From `--log-level`, TROUPE_LOG, TROUPE_TRACING and TROUPE_TRACING_CONTENT. Without a level and a `fallback`, output
 * stays human-readable. Throws `config_invalid`.
 */
export async function readOperators(
  { logLevel }: OperatorFlags,
  env: Env,
  fallback: LogLevel | null,
): Promise<Operators> {
  const level = logLevel ?? (env['TROUPE_LOG']?.trim() || fallback);
  const tracing = readTracing(env);
  const traced = { ...(tracing && { tracing }), onError: (error: unknown) => void printRequest(error, env) };
  if (level === null) return traced;
  if (!LEVELS.includes(level)) {
    const where = logLevel === undefined ? 'TROUPE_LOG' : '--log-level';
    throw new TroupeError('config_invalid', `${where} must be one of ${LEVELS.join(', ')}, not "${level}"`);
  }
  if (level === SILENT) return { ...traced, onWarning: () => {}, onError: () => {} };
  const logger = await openLogger(level as LogLevel, env);
  return { ...traced, logger, onError: (error) => reportRequestError(logger, error) };
}

function readTracing(env: Env): TroupeOptions['tracing'] {
  const asked = env['TROUPE_TRACING']?.trim() ?? '';
  if (asked === '') return undefined;
  if (asked === 'otel') return { content: env['TROUPE_TRACING_CONTENT'] === '1' };
  throw new TroupeError('config_invalid', `TROUPE_TRACING must be "otel" or empty, not "${asked}"`);
}

async function openLogger(level: LogLevel, env: Env): Promise<Logger> {
  const [{ createJsonLogger }, { guardLogger }, hide] = await Promise.all([
    import('../../library/runtime/json-logger.ts'),
    import('../../library/runtime/operators.ts'),
    openHide(env),
  ]);
  return guardLogger(createJsonLogger(level), hide);
}

async function openHide(env: Env): Promise<(text: string) => string> {
  const { hideSecrets } = await import('../../library/runtime/secrets.ts');
  const secrets = Object.entries(env).flatMap(([name, value]) => (SECRET.test(name) ? [value] : []));
  return hideSecrets(secrets, [env['MONGODB_URL'], env['POSTGRES_URL'], env['REDIS_URL']]);
}

function reportRequestError(logger: Logger, error: unknown): void {
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  logger.write('error', 'request_failed', {}, { message });
}

/** Prints an error with its cause, redacted: driver errors may contain addresses with passwords. */
async function printRequest(error: unknown, env: Env): Promise<void> {
  const hide = await openHide(env);
  console.error(hide(`troupe: a request failed: ${inspect(error)}`));
}
