import type { ErrorCode, TroupeError } from '../../errors.ts';

/**
 * Whether the store works, as its last operations have shown. A full or failing disk is over with the first write that
 * succeeds; damage is not over before somebody has repaired the file and the process was started again.
 */
export interface StoreTrouble {
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
