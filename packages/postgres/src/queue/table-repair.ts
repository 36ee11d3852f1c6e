import { TroupeError, type Warn } from '../troupe.ts';
import { ensureTables, isTableMissing, type QueueDatabase } from './queue-database.ts';

export interface TableRepairDeps {
  database: QueueDatabase;
  warn: Warn;
  /** Called when missing tables were created again. */
  onMended: () => void;
}

/** Notices missing tables, as after a restore without them, and creates them again. */
export function createTableRepair({ database, warn, onMended }: TableRepairDeps) {
  let mending: Promise<void> | null = null;

  async function mend(): Promise<void> {
    try {
      await ensureTables(database);
      warn('the tables of the queue were missing and are created again; work is found in the log', 'queue');
      onMended();
    } catch (error) {
      warn(error, 'queue');
    }
  }

  /** Looks at the error of a failed statement. */
  function suspect(error: unknown): void {
    if (isTableMissing(error)) mending ??= mend().finally(() => (mending = null));
  }

  return {
    suspect,
    /** Runs statements; a failure becomes `queue_unavailable`. */
    async reach<T>(run: () => Promise<T>): Promise<T> {
      try {
        return await run();
      } catch (error) {
        suspect(error);
        const why = error instanceof Error ? error.message : String(error);
        const message = `the queue in PostgreSQL does not answer: ${why}`;
        throw new TroupeError('queue_unavailable', message, {}, { cause: error });
      }
    },
  };
}
