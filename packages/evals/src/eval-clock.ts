import { type Clock, systemClock } from './troupe.ts';

/** The time of a conversation under test. */
export interface EvalClock extends Clock {
  /** Moves the time on, and resolves when whoever slept until then has looked at it and sleeps again. */
  pass(ms: number): Promise<void>;
}

/** Where the time of a conversation begins: the same for each run, so that prompts with times are the same bytes. */
export const EVAL_START_MS = Date.UTC(2026, 0, 5, 9);

/**
 * Pauses of this length are those of the search for work that has become due. They end with `pass` alone: the engine then
 * looks when the test says so and at no other time.
 */
export const SWEEP_MS = 86_400_000;
const LEAST_SWEEP_MS = SWEEP_MS / 2;

/** Shorter pauses are those of somebody who looks again and again: no time of the conversation. */
const LEAST_PAUSE_MS = 50;

interface Sleeper {
  end: () => void;
}

/**
 * A clock for `createTroupe`. `stands`: time is what `pass` and the pauses that turns waited for have taken, so that a log does not
 * depend on how fast a machine is. Else it also goes on as the system's does, as models that take time need it. Pauses are real but for
 * those of `SWEEP_MS`. `startsAt`: ms since the epoch.
 */
export function createEvalClock(
  { stands, startsAt = EVAL_START_MS }: { stands: boolean; startsAt?: number | undefined },
  system: Clock = systemClock,
): EvalClock {
  const sleepers = new Set<Sleeper>();
  const begun = system.monotonic();
  let paused = 0;
  let passed = 0;
  let asleep = Promise.withResolvers<void>();
  const elapsed = () => (stands ? paused : system.monotonic() - begun);

  function sleepUntilPassed(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const sleeper: Sleeper = { end };
      sleepers.add(sleeper);
      signal?.addEventListener('abort', end, { once: true });
      asleep.resolve();
      function end(): void {
        sleepers.delete(sleeper);
        signal?.removeEventListener('abort', end);
        resolve();
      }
    });
  }

  async function pause(ms: number, signal?: AbortSignal, purpose?: 'upkeep'): Promise<void> {
    const until = elapsed() + ms;
    await system.sleep(ms, signal);
    if (ms >= LEAST_PAUSE_MS && !signal?.aborted && purpose !== 'upkeep') paused = Math.max(paused, until);
  }

  return {
    now: () => Math.floor(startsAt + passed + elapsed()),
    monotonic: elapsed,
    sleep: (ms, signal, purpose) =>
      ms >= LEAST_SWEEP_MS ? sleepUntilPassed(signal) : pause(ms, signal, purpose),
    async pass(ms) {
      // The engine begins with a search of its own.
      if (sleepers.size === 0) await asleep.promise;
      passed += ms;
      asleep = Promise.withResolvers<void>();
      // Whoever sleeps again is added later, from a microtask.
      for (const { end } of sleepers) end();
      await asleep.promise;
    },
  };
}
