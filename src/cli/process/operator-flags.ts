import { readFileSync } from 'node:fs';
import { inspect } from 'node:util';
import { TroupeError } from '../../base/errors.ts';
import type { LogLevel } from '../../base/logger.ts';
import type { Tls } from '../../http/api/index.ts';
import type { TroupeOptions } from '../../library/runtime/create-troupe.ts';
import {
  hideEnvironment,
  levelIn,
  openLogger,
  readLevel,
  reportRequest,
} from '../../library/runtime/open-logger.ts';
import { type DatabaseUrl, databaseOf } from '../../library/runtime/services.ts';

export interface OperatorFlags {
  logLevel?: string;
}

export interface TlsFlags {
  tlsCert?: string;
  tlsKey?: string;
}

/** The files of `--tls-cert` and `--tls-key`; undefined without both. Throws `config_invalid`. */
export function readTls({ tlsCert, tlsKey }: TlsFlags): Tls | undefined {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert !== undefined && tlsKey !== undefined)
    return { cert: readPem(tlsCert, '--tls-cert'), key: readPem(tlsKey, '--tls-key') };
  const missing = tlsCert === undefined ? '--tls-cert' : '--tls-key';
  throw new TroupeError('config_invalid', `a certificate and its key belong together: name ${missing}, too`);
}

function readPem(file: string, flag: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code ?? 'it is not text';
    throw new TroupeError(
      'config_invalid',
      `cannot read ${file} of ${flag} (${reason})`,
      { file },
      { cause },
    );
  }
}

type Env = Record<string, string | undefined>;

/** Logging and tracing options of long-running processes. */
interface Operators extends Pick<TroupeOptions, 'logger' | 'tracing' | 'onWarning'> {
  /** Receives errors of requests that are answered with 500. */
  onError: (error: unknown) => void;
}

/**
 * From `--log-level`, TROUPE_LOG, TROUPE_TRACING and TROUPE_TRACING_CONTENT. With neither a level nor a `fallback`, output
 * stays human-readable. Throws `config_invalid`.
 */
export async function readOperators(
  { logLevel }: OperatorFlags,
  env: Env,
  fallback: LogLevel | null,
): Promise<Operators> {
  const level = logLevel === undefined ? (levelIn(env) ?? fallback) : readLevel(logLevel, '--log-level');
  const tracing = readTracing(env);
  const traced = { ...(tracing && { tracing }) };
  if (level === null) return { ...traced, onError: (error) => printRequest(error, env) };
  const lines = await openLogger(level, env);
  return { ...traced, ...lines, onError: (error) => reportRequest(lines.logger, error) };
}

function readTracing(env: Env): TroupeOptions['tracing'] {
  const asked = env['TROUPE_TRACING']?.trim() ?? '';
  if (asked === '') return undefined;
  if (asked === 'otel') return { content: env['TROUPE_TRACING_CONTENT'] === '1' };
  throw new TroupeError('config_invalid', `TROUPE_TRACING must be "otel" or empty, not "${asked}"`);
}

/** Prints an error with its cause, redacted: driver errors may contain addresses with passwords. */
function printRequest(error: unknown, env: Env): void {
  console.error(hideEnvironment(env)(`troupe: a request failed: ${inspect(error)}`));
}

/** The servers of the distributed mode: one database, and Redis unless PostgreSQL replaces it. */
export type ServiceUrls = DatabaseUrl & {
  redis?: string;
  /** Prefix of all keys in Redis. */
  prefix: string;
};

export interface UrlOptions {
  mongodb?: string;
  postgres?: string;
  redis?: string;
  prefix: string;
}

interface Service {
  name: string;
  option: 'mongodb' | 'postgres' | 'redis';
  variable: string;
  schemes: readonly string[];
  example: string;
}

const MONGODB: Service = {
  name: 'MongoDB',
  option: 'mongodb',
  variable: 'MONGODB_URL',
  schemes: ['mongodb:', 'mongodb+srv:'],
  example: 'mongodb://127.0.0.1:27017/troupe',
};
const POSTGRES: Service = {
  name: 'PostgreSQL',
  option: 'postgres',
  variable: 'POSTGRES_URL',
  schemes: ['postgres:', 'postgresql:'],
  example: 'postgres://127.0.0.1:5432/troupe',
};
const REDIS: Service = {
  name: 'Redis',
  option: 'redis',
  variable: 'REDIS_URL',
  schemes: ['redis', 'rediss'].flatMap((scheme) => [
    `${scheme}:`,
    `${scheme}+cluster:`,
    `${scheme}+sentinel:`,
  ]),
  example: 'redis://127.0.0.1:6379',
};
const ON_ONE_MACHINE = 'On one machine "troupe dev" needs neither a database server nor Redis';

/** Reads the URLs from the flags, else from the environment. Throws `config_invalid` for a missing or invalid one. */
export function readServiceUrls(options: UrlOptions, env: Env): ServiceUrls {
  const database = readDatabase(options, env);
  const { prefix } = options;
  const needsRedis = database.postgres === undefined;
  if (!needsRedis && !(options.redis ?? env[REDIS.variable]?.trim())) return { ...database, prefix };
  return { ...database, redis: readUrl(REDIS, options, env), prefix };
}

/** A flag takes precedence over the environment. If two databases are named, none is guessed. */
function readDatabase(options: UrlOptions, env: Env): DatabaseUrl {
  const { mongodb, postgres } = options;
  const isNamed = mongodb !== undefined || postgres !== undefined;
  const found = databaseOf(isNamed ? { mongodb, postgres } : urlsIn(env));
  if (found === undefined) {
    const message = `no database server is set: set MONGODB_URL (for example ${MONGODB.example}) or POSTGRES_URL (for example ${POSTGRES.example}), or use --mongodb or --postgres. ${ON_ONE_MACHINE}`;
    throw new TroupeError('config_invalid', message, { variable: MONGODB.variable });
  }
  if (found.postgres === undefined) return { mongodb: readUrl(MONGODB, options, env) };
  return { postgres: readUrl(POSTGRES, options, env) };
}

/** The database that the environment names; undefined if there is none. Throws `config_invalid` if it names two. */
export function databaseIn(env: Env): DatabaseUrl | undefined {
  return databaseOf(urlsIn(env));
}

function urlsIn(env: Env): { mongodb: string | undefined; postgres: string | undefined } {
  const read = ({ variable }: Service) => env[variable]?.trim() || undefined;
  return { mongodb: read(MONGODB), postgres: read(POSTGRES) };
}

function readUrl({ name, option, variable, schemes, example }: Service, options: UrlOptions, env: Env) {
  const url = options[option] ?? env[variable]?.trim();
  if (!url) {
    const message = `no ${name} server is set: set ${variable} (for example ${example}) or use --${option}; PostgreSQL in place of MongoDB needs no Redis. ${ON_ONE_MACHINE}`;
    throw new TroupeError('config_invalid', message, { variable });
  }
  if (schemes.some((scheme) => url.startsWith(`${scheme}//`))) return url;
  const where = options[option] === undefined ? variable : `--${option}`;
  // The value is not repeated: it may be a misplaced password.
  const message = `${where} is not the URL of a ${name} server: it must begin with ${schemes.join('// or ')}//`;
  throw new TroupeError('config_invalid', message, { variable });
}

/** The URLs without credentials, for display. */
export function shownServices(services: ServiceUrls): ServiceUrls {
  const { mongodb, postgres, redis, prefix } = services;
  const database = postgres === undefined ? { mongodb: shownUrl(mongodb) } : { postgres: shownUrl(postgres) };
  return { ...database, ...(redis !== undefined && { redis: shownUrl(redis) }), prefix };
}

/** The lines of a banner. */
export function serviceRows({ mongodb, postgres, redis, prefix }: ServiceUrls): string[][] {
  const database = postgres === undefined ? [MONGODB.name, mongodb] : [POSTGRES.name, postgres];
  const queue =
    redis === undefined ? ['Queue', 'in PostgreSQL'] : [REDIS.name, `${redis} (prefix ${prefix})`];
  return [database, queue];
}

/**
 * A URL without user, password and query, which may be secret. Parsed by hand: URL parsers refuse lists of hosts, and
 * passwords with unescaped characters.
 */
export function shownUrl(url: string): string {
  const start = url.indexOf('://') + 3;
  const end = url.lastIndexOf('@');
  const rest = (end < 0 ? url.slice(start) : url.slice(end + 1)).split(/[?#]/)[0] ?? '';
  return `${url.slice(0, start)}${rest}`;
}
