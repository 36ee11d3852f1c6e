import { setTimeout as wait } from 'node:timers/promises';
import { type ActorAddress, DEFAULT_TENANT } from '../src/events/index.ts';
import type { Store } from '../src/store/store.ts';
import type { Work } from './work-log.ts';

/**
 * Recovery time: from the SIGKILL of a process with an open model or tool request of an actor, to the moment when
 * another process takes that actor's lease (its fence rises). Measured by polling, so each time is too long by up to
 * `pollMs`, never too short. Actors whose turn was committed by then do not count: nothing of them was broken off.
 */
export interface Recovery {
  /** Watches the work that this kill broke off. */
  watch(broken: readonly Work[], killedAt: number): void;
  /** One per resumed turn, ms. */
  times: number[];
  /** Turns not resumed yet. */
  open(): number;
}

/** Watching more would add noticeable load. */
const MOST_WATCHED = 30;

export function createRecovery(
  store: Pick<Store, 'readActor'>,
  ended: AbortSignal,
  pollMs: number,
): Recovery {
  const times: number[] = [];
  let watched = 0;

  async function watchOne({ conversation, agent }: Work, killedAt: number): Promise<void> {
    const address = { tenant: DEFAULT_TENANT, conversation, agent } as ActorAddress;
    const before = await store.readActor(address);
    if (!before?.turn || before.owner === '') return;
    while (!ended.aborted) {
      await wait(pollMs);
      const now = await store.readActor(address);
      if (!now) return;
      if (now.fence > before.fence) return void times.push(Date.now() - killedAt);
      // Its last write was on its way to the database when it was killed.
      if (now.turn === null) return;
    }
  }

  return {
    times,
    open: () => watched,
    watch(broken, killedAt) {
      for (const work of broken) {
        if (watched >= MOST_WATCHED) return;
        watched += 1;
        // A failed read costs one figure.
        void watchOne(work, killedAt)
          .catch(() => undefined)
          .finally(() => (watched -= 1));
      }
    },
  };
}

export function percentile(values: readonly number[], p: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))] ?? 0;
}
