import {
  BSON,
  MongoAPIError,
  MongoCompatibilityError,
  MongoError,
  MongoParseError,
  MongoServerError,
  MongoServerSelectionError,
} from 'mongodb';
import { type ErrorCode, TroupeError } from '../../base/errors.ts';

/** Names the server in error messages, in place of the URL, which contains the password. */
export interface MongoPlace {
  hosts: string;
  database: string;
}

/** Error code of a taken unique key. The key is found by a query, never parsed from the text. */
const DUPLICATE_KEY = 11_000;

/** Error codes of the server for which a retry is useless, with their meaning for Troupe. All other codes are transient. */
const MEANINGS: Record<number, { code: ErrorCode; text: string }> = {
  2: { code: 'internal', text: 'the server refused a command as malformed' },
  9: { code: 'server_unsuitable', text: 'the server does not understand a command' },
  13: {
    code: 'data_unwritable',
    text: 'this user is not allowed to do that; grant it the role readWrite on the database',
  },
  14: { code: 'store_corrupt', text: 'a document has a field of the wrong type' },
  18: { code: 'config_invalid', text: 'the user or the password is wrong' },
  59: { code: 'server_unsuitable', text: 'the server lacks a command' },
  66: { code: 'internal', text: 'a key cannot be changed' },
  67: { code: 'server_unsuitable', text: 'the server cannot create an index' },
  72: { code: 'server_unsuitable', text: 'the server does not know an option' },
  85: { code: 'store_corrupt', text: 'an index of Troupe exists with other options' },
  86: { code: 'store_corrupt', text: 'an index of Troupe exists with other keys' },
  115: { code: 'server_unsuitable', text: 'the server does not support a command' },
  238: { code: 'server_unsuitable', text: 'the server does not support a command' },
  8000: { code: 'config_invalid', text: 'the user or the password is wrong' },
  10_334: { code: 'event_too_large', text: 'the document is too large to be stored' },
  17_419: { code: 'event_too_large', text: 'the document is too large to be stored' },
};

const NEEDED = 'MongoDB 4.4 or later, or a server that speaks its protocol';

/** Converts an error of the MongoDB driver, with a code that says what the operator or the caller can do. */
export function mongoError(thrown: unknown, { hosts, database }: MongoPlace): TroupeError {
  if (thrown instanceof TroupeError) return thrown;
  const detail = detailOf(thrown);
  const data = { hosts, database, ...(thrown instanceof MongoServerError ? { errcode: thrown.code } : {}) };
  const become = (code: ErrorCode, text: string) =>
    new TroupeError(code, `MongoDB at ${hosts}: ${text}`, data, { cause: thrown });

  const unfit = findUnfit(thrown);
  if (unfit) return become('server_unsuitable', `${unfit}. Troupe needs ${NEEDED}`);
  if (thrown instanceof MongoServerSelectionError) {
    const refusal = refusalOf(thrown);
    if (refusal) return mongoError(refusal, { hosts, database });
    return become(
      'store_unavailable',
      `no server answers (${detail}). Check that it runs and the address is right`,
    );
  }
  if (thrown instanceof MongoServerError) {
    const meaning = typeof thrown.code === 'number' ? MEANINGS[thrown.code] : undefined;
    if (meaning) return become(meaning.code, `${meaning.text} (${detail})`);
    return become('store_unavailable', `${detail}; try again`);
  }
  if (thrown instanceof BSON.BSONError || thrown instanceof RangeError)
    return become('event_too_large', `the document cannot be stored (${detail})`);
  return isTransient(thrown)
    ? become('store_unavailable', `${detail}; try again`)
    : become('internal', detail);
}

function detailOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

function isTransient(thrown: unknown): boolean {
  // API errors of the driver are bugs of Troupe, except those of a closed connection.
  if (thrown instanceof MongoAPIError) return /closed|not connected/i.test(detailOf(thrown));
  // A socket that breaks during a write throws a plain system error.
  return thrown instanceof MongoError || isSystemError(thrown);
}

function isSystemError(thrown: unknown): boolean {
  return thrown instanceof Error && 'syscall' in thrown && 'errno' in thrown;
}

export function isDuplicateKey(thrown: unknown): thrown is MongoServerError {
  return thrown instanceof MongoServerError && thrown.code === DUPLICATE_KEY;
}

/** The error of an unusable URL. Leaves out the driver's message, which may quote the URL with its password. */
export function urlError(thrown: unknown): TroupeError {
  const reason =
    thrown instanceof MongoParseError ? 'it cannot be parsed' : 'its options do not fit together';
  const message = `the MongoDB url is not usable: ${reason}. Its form is mongodb://user:password@host:27017/database`;
  return new TroupeError('config_invalid', message);
}

/** The driver's message about an unsupported server version, at any depth of the error. */
function findUnfit(thrown: unknown): string | null {
  for (const each of [thrown, ...serverErrors(thrown)]) {
    if (each instanceof MongoCompatibilityError) return each.message;
  }
  return null;
}

/** The error by which a server refused the login, if one was reached. */
function refusalOf(thrown: MongoServerSelectionError): MongoServerError | undefined {
  return serverErrors(thrown).find(
    (each) => each instanceof MongoServerError && typeof each.code === 'number' && each.code in MEANINGS,
  ) as MongoServerError | undefined;
}

function serverErrors(thrown: unknown): unknown[] {
  if (!(thrown instanceof MongoServerSelectionError)) return [];
  const servers = thrown.reason?.servers;
  return servers ? [...servers.values()].map(({ error }: { error: unknown }) => error) : [];
}

/** Work that no caller waits for. Its failures are reported, and `close` can wait for it. */
export interface Background {
  run(what: string, work: () => Promise<unknown>): void;
  /** Resolves when all begun work has ended. */
  settled(): Promise<void>;
}

export function createBackground(onWarning: (error: unknown, what: string) => void): Background {
  const running = new Set<Promise<void>>();
  return {
    run(what, work) {
      const job = work().then(
        () => undefined,
        (error: unknown) => onWarning(error, what),
      );
      running.add(job);
      void job.then(() => running.delete(job));
    },
    async settled() {
      while (running.size > 0) await Promise.all(running);
    },
  };
}
