import pg from 'pg';
import { type ErrorCode, TroupeError } from '../troupe.ts';

/** Names the server in error messages, in place of the URL, which contains the password. */
export interface PostgresPlace {
  host: string;
  database: string;
  schema: string;
}

interface Meaning {
  code: ErrorCode;
  text: string;
}

const ALTERED: Meaning = {
  code: 'store_corrupt',
  text: 'its tables are not as Troupe made them; restore them from a backup',
};
const DAMAGED: Meaning = {
  code: 'store_corrupt',
  text: 'the data of the server is damaged; restore it from a backup',
};
const LOGIN: Meaning = { code: 'config_invalid', text: 'the user or the password is wrong' };
const TOO_LARGE: Meaning = { code: 'event_too_large', text: 'the text is too large to be stored' };
const UNSUITABLE: Meaning = { code: 'server_unsuitable', text: 'the server does not support a command' };

/** SQLSTATE codes for which a retry is useless, with their meaning for Troupe. */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  '0A000': UNSUITABLE,
  '22001': TOO_LARGE,
  '28000': LOGIN,
  '28P01': LOGIN,
  '3D000': { code: 'config_invalid', text: 'the database does not exist; create it' },
  '3F000': ALTERED,
  '42501': {
    code: 'data_unwritable',
    text: 'this user is not allowed to do that; grant it the right to create and use the schema',
  },
  '42703': ALTERED,
  '42704': UNSUITABLE,
  '42804': ALTERED,
  '42883': UNSUITABLE,
  '42P01': ALTERED,
  '42P10': ALTERED,
  '54000': TOO_LARGE,
  XX001: DAMAGED,
  XX002: DAMAGED,
};

/**
 * Classes of transient SQLSTATE codes: a lost connection, a conflict of transactions, a lack of resources, a busy object, an
 * operator's action, the system. A server that takes no writes, as during a failover, is transient too.
 */
const TRANSIENT = ['08', '40', '53', '55', '57', '58'];
/**
 * Codes of a connection to the wrong server or session: a server that takes no writes, such as a demoted primary that kept its
 * connections, or a session that lacks statements prepared on it. A new connection may reach the right one.
 * https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const MISLED = ['25006', '26000', '42P05'];

/** Converts an error of the PostgreSQL driver, with a code that says what the operator or the caller can do. */
export function postgresError(thrown: unknown, { host, database, schema }: PostgresPlace): TroupeError {
  if (thrown instanceof TroupeError) return thrown;
  const detail = thrown instanceof Error ? thrown.message || codeOf(thrown) : String(thrown);
  const sqlState = isRefusal(thrown) ? thrown.code : undefined;
  const data = { host, database, schema, ...(sqlState !== undefined && { errcode: sqlState }) };
  const become = (code: ErrorCode, text: string) =>
    new TroupeError(code, `PostgreSQL at ${host}: ${text}`, data, { cause: thrown });
  if (thrown instanceof RangeError) return become(TOO_LARGE.code, `${TOO_LARGE.text} (${detail})`);
  if (!isRefusal(thrown)) {
    // A TypeError means a wrong argument, which is a bug of Troupe. Any other failure is one of the connection.
    if (thrown instanceof TypeError) return become('internal', detail);
    return become('store_unavailable', `no answer (${detail}). Check that it runs and the address is right`);
  }
  const meaning = MEANINGS[thrown.code ?? ''];
  if (meaning) return become(meaning.code, `${meaning.text} (${detail})`);
  const isTransient = TRANSIENT.includes(thrown.code?.slice(0, 2) ?? '') || isMisled(thrown);
  return isTransient ? become('store_unavailable', `${detail}; try again`) : become('internal', detail);
}

/** Whether the server refused the statement. */
function isRefusal(thrown: unknown): thrown is pg.DatabaseError {
  return thrown instanceof pg.DatabaseError;
}

/** Whether the connection can be used after this error. */
export function isUsableAfter(thrown: unknown): boolean {
  if (thrown instanceof TroupeError) return true;
  return isRefusal(thrown) && thrown.severity === 'ERROR' && !isMisled(thrown);
}

/** Whether connections opened before this one also reach the wrong server. */
export function isMisled(thrown: unknown): boolean {
  return isRefusal(thrown) && MISLED.includes(thrown.code ?? '');
}

export function isDuplicateKey(thrown: unknown): boolean {
  return isRefusal(thrown) && thrown.code === '23505';
}

/** The error of an unusable URL. Does not quote the URL, which may contain a password. */
export function urlError(): TroupeError {
  const message =
    'the PostgreSQL url cannot be parsed. Its form is postgres://user:password@host:5432/database';
  return new TroupeError('config_invalid', message);
}

function codeOf(thrown: Error): string {
  return 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : thrown.name;
}
