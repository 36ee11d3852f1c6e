import { type ErrorCode, TroupeError } from '../../base/errors.ts';

/** Primary result codes of SQLite (https://sqlite.org/rescode.html) and their meaning for Troupe. */
const MEANINGS: Record<number, { code: ErrorCode; text: string }> = {
  // Statements are fixed, so a statement that does not fit the tables means a damaged schema.
  1: { code: 'store_corrupt', text: 'its tables are not as Troupe made them; restore it from a backup' },
  5: { code: 'store_unavailable', text: 'another program holds the database; try again' },
  6: { code: 'store_unavailable', text: 'another program holds the database; try again' },
  7: { code: 'store_unavailable', text: 'out of memory' },
  8: {
    code: 'data_unwritable',
    text: 'the file or its directory is read-only; make both writable for this user',
  },
  10: { code: 'store_unavailable', text: 'the disk failed to read or write; check it' },
  11: { code: 'store_corrupt', text: 'the file is damaged; restore it from a backup' },
  13: {
    code: 'store_unavailable',
    text: 'the disk is full; nothing was written, free some space and try again',
  },
  14: {
    code: 'data_unwritable',
    text: 'the file cannot be opened; its directory must exist and be writable for this user',
  },
  18: { code: 'event_too_large', text: 'the text is too large to be stored' },
  23: { code: 'data_unwritable', text: 'access was denied' },
  26: { code: 'store_corrupt', text: 'the file is not a database' },
};

/** Converts an error of SQLite, with a code that says what the operator or the caller can do. */
export function sqliteError(thrown: unknown, path: string): TroupeError {
  if (thrown instanceof TroupeError) return thrown;
  const { errcode } = thrown as { errcode?: unknown };
  const detail = thrown instanceof Error ? thrown.message : String(thrown);
  // Extended codes keep the primary one in the low byte.
  const meaning = typeof errcode === 'number' ? MEANINGS[errcode & 0xff] : undefined;
  if (!meaning)
    return new TroupeError('internal', `sqlite, ${path}: ${detail}`, { path, errcode }, { cause: thrown });
  return new TroupeError(
    meaning.code,
    `${path}: ${meaning.text} (${detail})`,
    { path, errcode },
    { cause: thrown },
  );
}

/**
 * The last failure of the store. A full or failing disk is forgotten with the first write that succeeds; damage stays
 * until the file is repaired and the process restarted.
 */
interface StoreTrouble {
  failed(error: TroupeError): void;
  wrote(): void;
  /** Throws the failure, if there is one. If it may be over, tries a write first, because no other write may come. */
  check(tryWrite: () => Promise<void>): Promise<void>;
}

const TROUBLES: readonly ErrorCode[] = ['store_unavailable', 'store_corrupt', 'data_unwritable'];

export function createStoreTrouble(onWarning: (error: unknown, where: string) => void): StoreTrouble {
  let trouble: TroupeError | null = null;

  return {
    failed(error) {
      if (!TROUBLES.includes(error.code) || trouble?.code === 'store_corrupt') return;
      if (trouble?.code !== error.code) onWarning(error, 'store');
      trouble = error;
    },
    wrote() {
      if (!trouble || trouble.code === 'store_corrupt') return;
      trouble = null;
      onWarning('the store can be written again', 'store');
    },
    async check(tryWrite) {
      // A failure has been reported through `failed`.
      if (trouble && trouble.code !== 'store_corrupt') await tryWrite().catch(() => {});
      if (trouble) throw trouble;
    },
  };
}
