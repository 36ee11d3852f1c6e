import { TroupeError } from './troupe.ts';

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 5_000;

/** Whether the same request may succeed later. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof TroupeError)) return false;
  return (
    error.policy === 'retry' ||
    error.code === 'shutting_down' ||
    error.data['status'] === 429 ||
    // A proxy answers for a server that is being restarted.
    [502, 503, 504].includes(Number(error.data['status']))
  );
}

/** Waits before repetition number `failures`, from 1: longer each time, up to 5 s, and never the same for two clients. */
export async function backOff(failures: number, error: unknown, signal: AbortSignal): Promise<void> {
  const grown = Math.min(FIRST_WAIT_MS * 2 ** (failures - 1), LONGEST_WAIT_MS);
  const asked = error instanceof TroupeError ? Number(error.data['retryAfterMs']) || 0 : 0;
  const ms = Math.max(grown * (0.5 + Math.random() / 2), Math.min(asked, LONGEST_WAIT_MS));
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done, { once: true });
  });
}

/** Repeats transient failures until `signal` aborts, then throws `aborted`. Only for requests that may be repeated. */
export async function untilDone<T>(signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    if (signal.aborted) throw aborted(signal);
    try {
      return await attempt();
    } catch (error) {
      if (signal.aborted) throw aborted(signal);
      if (!isTransient(error)) throw error;
      await backOff(failures, error, signal);
    }
  }
}

export function aborted({ reason }: AbortSignal): TroupeError {
  const message = 'the wait was ended; the agents go on';
  return new TroupeError('aborted', message, {}, { cause: reason });
}
