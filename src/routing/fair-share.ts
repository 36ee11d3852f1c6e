import type { Clock } from '../clock.ts';
import type { TenantId } from '../events/index.ts';
import { createSharing, FEW } from './sharing.ts';
import type { StorePace } from './store-pace.ts';

/**
 * Who of those that a worker has taken begins. While tenants share it, one with much to do has no more at work than the
 * store keeps pace with, and what others do stays as fast as it was.
 *
 * Owns: what is here by tenant, at work or waiting. Does not own: how long the store takes.
 *  1. A tenant with at most `FEW` actors here begins at once, and so does everybody while one tenant has the worker.
 *  2. All others begin in the order in which they came, while fewer are at work than `pace` says; one always may.
 *  3. After `close` nobody who waits begins, and is told so.
 */
export interface FairShare {
  /** Resolves when the actor may begin; false: it is not to. Each call is followed by one of `leave`. */
  enter(tenant: TenantId): Promise<boolean>;
  leave(tenant: TenantId, hasBegun: boolean): void;
  close(): void;
}

/** The pace changes by itself. */
const LOOK_EVERY_MS = 50;

export function createFairShare(options: { pace: StorePace; clock: Clock }): FairShare {
  const { pace, clock } = options;
  const sharing = createSharing(clock);
  const here = new Map<TenantId, number>();
  const closing = new AbortController();
  let waiting: ((isLetIn: boolean) => void)[] = [];
  let atWork = 0;
  let isLooking = false;

  function letIn(): void {
    while (waiting.length > 0 && (atWork < Math.max(1, pace.limit(atWork)) || !sharing.isShared())) {
      atWork += 1;
      waiting.shift()?.(true);
    }
    if (waiting.length > 0 && !isLooking) void lookAgain();
  }

  async function lookAgain(): Promise<void> {
    isLooking = true;
    await clock.sleep(LOOK_EVERY_MS, closing.signal);
    isLooking = false;
    letIn();
  }

  return {
    enter(tenant) {
      sharing.note(tenant);
      const count = (here.get(tenant) ?? 0) + 1;
      here.set(tenant, count);
      if (closing.signal.aborted) return Promise.resolve(false);
      if (count <= FEW || !sharing.isShared()) {
        atWork += 1;
        return Promise.resolve(true);
      }
      return new Promise((resolve) => {
        waiting.push(resolve);
        letIn();
      });
    },
    leave(tenant, hasBegun) {
      const left = (here.get(tenant) ?? 1) - 1;
      if (left > 0) here.set(tenant, left);
      else here.delete(tenant);
      if (hasBegun) atWork -= 1;
      letIn();
    },
    close() {
      closing.abort();
      for (const refuse of waiting) refuse(false);
      waiting = [];
    },
  };
}
