import { TroupeError } from '../base/errors.ts';
import { placesOf } from './conversation-keys.ts';
import type { EntryKey, KeyRange } from './driver.ts';

/** Operations of an adapter on one conversation. Each is safe to repeat. */
export interface DeletionSteps {
  /** Maximum rows that one call removes. */
  step: number;
  /** Removes the addressees from its events, so that they wake no agent. */
  unaddress(): Promise<unknown>;
  /** Removes all its actors; returns their number. */
  actors(): Promise<number>;
  keys(range: KeyRange): Promise<string[]>;
  entries(keys: readonly EntryKey[]): Promise<unknown>;
  /** Removes its newest events, at most `step`; returns their number. */
  events(): Promise<number>;
  /** Waits until no other process relies on a removed event. Absent if no other process uses the store. */
  untilForgotten?: () => Promise<void>;
}

/** Events written during the removal are removed in another round. Bounds the rounds if a writer is faster. */
const MAX_ROUNDS = 20;

/**
 * Removes a conversation.
 *  R1  Addressees are removed before actors: an addressed agent without a record would begin a turn.
 *  R2  Actors are removed before entries: a pinned turn without its journal would repeat its model and tool calls.
 *  R3  Events are removed last and newest first, so the rest of the log stays dense and `head` reports it until the end. A
 *      writer that is still running may break this with one more event.
 *  R4  Rounds repeat until one finds nothing after every process has forgotten the end of the log.
 */
export async function deleteInOrder(
  log: { tenant: string; conversation: string },
  steps: DeletionSteps,
): Promise<{ events: number; actors: number }> {
  const removed = { events: 0, actors: 0 };
  for (let round = 1; round <= MAX_ROUNDS; round += 1) {
    await steps.unaddress();
    const actors = await steps.actors();
    const entries = await removeEntries(log, steps);
    const events = await untilFewer(steps.step, () => steps.events());
    removed.actors += actors;
    removed.events += events;
    if (actors + entries + events === 0) return removed;
    if (events > 0) await steps.untilForgotten?.();
  }
  const message = `conversation ${log.conversation} is being written to during its removal; stop its agents and try again`;
  throw new TroupeError('store_unavailable', message, { ...log });
}

async function removeEntries(log: { tenant: string; conversation: string }, steps: DeletionSteps) {
  const { tenant } = log;
  let removed = 0;
  for (const { namespace, before, isOwn, ...place } of placesOf(log.conversation)) {
    let after = place.after;
    await untilFewer(steps.step, async () => {
      const found = await steps.keys({ tenant, namespace, after, before, limit: steps.step });
      after = found.at(-1) ?? after;
      const own = found.filter(isOwn).map((key) => ({ tenant, namespace, key }));
      if (own.length > 0) await steps.entries(own);
      removed += own.length;
      return found.length;
    });
  }
  return removed;
}

/** Repeats `work` until it returns less than `step`. Returns the sum. */
export async function untilFewer(step: number, work: () => Promise<number>): Promise<number> {
  for (let sum = 0; ;) {
    const count = await work();
    sum += count;
    if (count < step) return sum;
  }
}
