import type { ActorAddress } from '../../events/index.ts';
import type { Entry } from '../../queue/admission.ts';
import type { EngineDeps } from './engine-deps.ts';

/**
 * The slot of an activation under the caps of concurrent turns. A turn that waits for its model server to come back holds
 * none, so that it keeps nobody else from working.
 */
export interface TurnSlot {
  /** Gives the slot back until `regain`. Repeating it has no effect. Never throws. */
  leave(): Promise<void>;
  /** Waits until the slot is held again, or until the signal aborts. Never throws. */
  regain(signal: AbortSignal): Promise<void>;
}

/** `entry`: the slot that the activation has entered with. */
export function createTurnSlot(
  { admission, clock }: Pick<EngineDeps, 'admission' | 'clock'>,
  { address, provider }: { address: ActorAddress; provider: string },
  entry: Extract<Entry, { kind: 'admitted' }>,
): TurnSlot {
  let held: typeof entry | null = entry;
  return {
    async leave() {
      const left = held;
      held = null;
      await left?.leave();
    },
    async regain(signal) {
      while (held === null && !signal.aborted) {
        const next = await admission.enter(address, provider);
        if (next.kind === 'admitted') held = next;
        else await clock.sleep(next.retryInMs, signal);
      }
    },
  };
}
