import type { Clock } from '../../base/clock.ts';
import { textOf } from './results.ts';

/** Which tools a server offers, as last listed. */
export interface OfferedTools {
  /** True until a list without the tool has been read. */
  has(tool: string): boolean;
  /** The list has changed: reads it again. One that cannot be read changes nothing. */
  changed(): void;
}

/** Minimum time between two listings: a server may announce changes without end. */
const PAUSE_MS = 1_000;

export function createOfferedTools(
  list: () => Promise<readonly unknown[]>,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): OfferedTools {
  let names: ReadonlySet<string> | null = null;
  let isReading = false;
  let isStale = false;

  async function read(): Promise<void> {
    isReading = true;
    try {
      while (isStale && !signal.aborted) {
        isStale = false;
        names = new Set((await list()).map((tool) => textOf(Object(tool)['name']) ?? ''));
        await clock.sleep(PAUSE_MS, signal);
      }
    } catch {
      // The connection reports why a server does not answer. The next announcement reads the list again.
    } finally {
      isReading = false;
    }
  }

  return {
    has: (tool) => names?.has(tool) ?? true,
    changed() {
      isStale = true;
      if (!isReading) void read();
    },
  };
}
