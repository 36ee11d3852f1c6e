import type { Clock } from '../base/clock.ts';
import { type ActorAddress, addressKey } from '../events/index.ts';
import type { Router, WakeHandler } from './router.ts';

/**
 * A router whose running handlers may lend their places. A tool that waits for other agents needs no place meanwhile; if
 * it kept its place, they might wait for that place while it waits for them.
 *  L1  For each lent place one more handler runs, so at most `concurrency` handlers run that do not wait.
 *  L2  Wakes of this process are served in lent places. They are in the queue as well: running one again costs one look.
 *  L3  A handler that began in a lent place may end there, even if the place was returned before.
 */
interface LendingRouter extends Router {
  /** Lends the place of a running handler; the function returns it, once. */
  lend(): () => void;
}

export function withLentPlaces(router: Router, clock: Clock): LendingRouter {
  const waiting = new Map<string, ActorAddress>();
  let handler: WakeHandler | null = null;
  let onError: (error: unknown, address: ActorAddress) => void = () => undefined;
  let lent = 0;
  let running = 0;

  function serveNext(): void {
    while (handler && running < lent) {
      const [key, address] = waiting.entries().next().value ?? [];
      if (key === undefined || address === undefined) return;
      waiting.delete(key);
      running += 1;
      void serve(handler, address).finally(() => {
        running -= 1;
        serveNext();
      });
    }
  }

  async function serve(handle: WakeHandler, address: ActorAddress): Promise<void> {
    try {
      const outcome = await handle(address, () => undefined);
      if (outcome.kind === 'busy') void offerLater(address, outcome.retryInMs);
    } catch (error) {
      onError(error, address);
    }
  }

  async function offerLater(address: ActorAddress, ms: number): Promise<void> {
    await clock.sleep(ms);
    offer(address);
  }

  function offer(address: ActorAddress): void {
    if (lent === 0) return;
    waiting.set(addressKey(address), address);
    serveNext();
  }

  return {
    ...router,
    wake(address, options) {
      const woken = router.wake(address, options);
      const isOffered = lent > 0 && (options?.delayMs ?? 0) <= 0;
      return isOffered ? woken.then(() => offer(address)) : woken;
    },
    start(given, options) {
      ({ onError } = options);
      handler = given;
      router.start(given, options);
    },
    lend() {
      let isLent = true;
      lent += 1;
      return () => {
        if (isLent) lent -= 1;
        isLent = false;
        if (lent === 0) waiting.clear();
      };
    },
  };
}
