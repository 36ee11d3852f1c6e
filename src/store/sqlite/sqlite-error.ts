import { type ErrorCode, TroupeError } from '../../errors.ts';

/** Primary result codes of SQLite (https://sqlite.org/rescode.html) and what they mean for us. */
const MEANINGS: Record<number, { code: ErrorCode; text: string }> = {
  // Our statements are fixed: one that does not fit the tables means a damaged schema.
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

/** Anything SQLite threw, by what the operator or the caller can do about it. */
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
 * Whether the store works, as its last operations have shown. A full or failing disk is over with the first write that
 * succeeds; damage is not over before somebody has repaired the file and the process was started again.
 */
interface StoreTrouble {
  failed(error: TroupeError): void;
  wrote(): void;
  /** Throws what the trouble is. A trouble that may be over is looked at again: by a write, as nobody else may make one. */
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
      // It tells of its failure above.
      if (trouble && trouble.code !== 'store_corrupt') await tryWrite().catch(() => {});
      if (trouble) throw trouble;
    },
  };
}
