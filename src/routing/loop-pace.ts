/**
 * How many actors one process works on at once while its event loop is the bottleneck. Turns that wait for a model leave the
 * loop idle, and as many may run as the caller allows. Turns that compute make each other slower, and everybody else
 * too: the more of them take part in one turn of the loop, the longer a request has to wait for its own. Fewer at once get less
 * done, since one sync of the disk serves all that write in one turn of the loop.
 */
export interface LoopPace {
  /** From `LEAST_AT_ONCE` to the most that is allowed. */
  limit(): number;
  /** Told how long a turn of the loop took, ms, while work was waiting. */
  beat(ms: number, running: number): void;
}

const LONG_TURN_MS = 8;
const LEAST_AT_ONCE = 8;
const SLOWER = 0.9;

export function createLoopPace(most: number): LoopPace {
  const least = Math.min(LEAST_AT_ONCE, most);
  let limit = most;
  return {
    limit: () => Math.floor(limit),
    beat(ms, running) {
      // Up fast, down slowly: one long turn is chance, an idle loop is not.
      if (ms <= LONG_TURN_MS) limit = Math.min(most, limit + 1);
      else limit = Math.max(least, Math.min(limit, running) * SLOWER);
    },
  };
}
