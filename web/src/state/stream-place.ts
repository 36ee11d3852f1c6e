/**
 * Most streams of all tabs together. Over HTTP/1.1 browsers open only six connections to a server for all tabs, and some must
 * be left for requests. A tab without a place polls instead. A hidden tab gives its place back.
 */
const PLACES = 3;

/**
 * Runs `use` with a place. Resolves to false at once if all places are taken, else to true when `use` has ended. Throws what
 * `use` throws.
 */
export async function withPlace(use: () => Promise<void>): Promise<boolean> {
  // Only secure contexts have locks. Without them hidden tabs still give way, but the other tabs are not counted.
  if (!navigator.locks) {
    await use();
    return true;
  }
  for (let place = 1; place <= PLACES; place += 1) {
    const isUsed = await navigator.locks.request(
      `troupe-stream-${place}`,
      { ifAvailable: true },
      async (lock) => {
        if (lock) await use();
        return lock !== null;
      },
    );
    if (isUsed) return true;
  }
  return false;
}

let untilWrite = new AbortController();
/** Aborts with the next write of this tab. */
export const nextWrite = (): AbortSignal => untilWrite.signal;

/** To be called after a write: a tab without a place then asks for its effect at once. */
export function noteWrite(): void {
  untilWrite.abort();
  untilWrite = new AbortController();
}

/** Resolves when the tab becomes visible, or the signal aborts. */
export function untilSeen(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (document.visibilityState !== 'visible' && !signal.aborted) return;
      document.removeEventListener('visibilitychange', look);
      signal.removeEventListener('abort', look);
      resolve();
    };
    document.addEventListener('visibilitychange', look);
    signal.addEventListener('abort', look);
    look();
  });
}

/** Time after which a hidden tab sleeps, ms. A user who looks elsewhere for a moment finds it unchanged. */
const DOZE_MS = 10_000;

/** Aborts when the tab has been hidden for a while, or with `signal`. `end` stops watching. */
export function whileSeen(signal: AbortSignal): { signal: AbortSignal; end: () => void } {
  const asleep = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = () => {
    clearTimeout(timer);
    if (document.visibilityState !== 'visible') timer = setTimeout(() => asleep.abort(), DOZE_MS);
  };
  document.addEventListener('visibilitychange', look);
  look();
  const end = () => {
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', look);
  };
  return { signal: AbortSignal.any([signal, asleep.signal]), end };
}

/** Resolves after the time, or when the signal aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, signal.aborted ? 0 : ms);
    signal.addEventListener('abort', done);
  });
}
