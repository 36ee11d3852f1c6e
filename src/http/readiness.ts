import type { Clock } from '../base/clock.ts';
import type { Troupe } from '../library/troupe.ts';

/** Whether this process should get work. `store` and `queue` are `ok` or describe the problem. */
export interface Readiness {
  status: 'ok' | 'unavailable' | 'stopping';
  store: string;
  queue: string;
}

interface ReadinessOptions {
  clock: Clock;
  /** Aborted when the process is about to end. */
  signal?: AbortSignal | undefined;
}

const ANSWER_MS = 3_000;
/** The endpoint is public and unlimited, so the services are checked at most once in this time. */
const KEPT_MS = 1_000;
const SILENT = { store: 'no answer in time', queue: 'no answer in time' };

export function createReadiness(
  troupe: Pick<Troupe, 'health'>,
  { clock, signal }: ReadinessOptions,
): () => Promise<Readiness> {
  let asked: { at: number; health: ReturnType<typeof ask> } | null = null;

  async function ask(): Promise<{ store: string; queue: string }> {
    return (await within(ANSWER_MS, troupe.health())) ?? SILENT;
  }

  return async function readiness() {
    const now = clock.monotonic();
    if (!asked || now - asked.at >= KEPT_MS) asked = { at: now, health: ask() };
    const { store, queue } = await asked.health;
    const isReachable = store === 'ok' && queue === 'ok';
    // Read last: the process may have begun to stop meanwhile.
    const status = signal?.aborted ? 'stopping' : isReachable ? 'ok' : 'unavailable';
    return { status, store, queue };
  };
}

/** The value of `promise`; null if it rejects or takes longer than `ms`. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms);
  });
  try {
    return await Promise.race([promise.catch(() => null), late]);
  } finally {
    clearTimeout(timer);
  }
}
