import { TroupeError } from '../errors.ts';
import { type KeyRange, placesOf } from './conversation-keys.ts';
import type { EntryKey } from './driver.ts';

/** What an adapter can do about one conversation. Each is safe to repeat, and may find nothing to do. */
export interface DeletionSteps {
  /** Bounds what one call removes. */
  step: number;
  /** Its events wake nobody any more. */
  unaddress(): Promise<unknown>;
  /** Removes all its actors; returns how many. */
  actors(): Promise<number>;
  keys(range: KeyRange): Promise<string[]>;
  registers(keys: readonly EntryKey[]): Promise<unknown>;
  /** Removes the newest of its events, at most `step`; returns how many. */
  events(): Promise<number>;
  /** Waits until no other process takes an event for there that was removed before; absent where there is no other. */
  untilForgotten?: () => Promise<void>;
}

/** What is written into it meanwhile is removed by another round, as long as somebody writes no faster than that. */
const MAX_ROUNDS = 20;

/**
 * Removes a conversation.
 *  R1  Events stop to address before actors go: an agent that was addressed and has no record is one that has not
 *      begun, and would begin.
 *  R2  Actors go before registers: a pinned turn without its journal would ask again, and call its tools again.
 *  R3  Events go last and newest first: while anything is left but what a dying writer adds, `head` says so, and what is
 *      left of the log is dense.
 *  R4  It ends with a round that found nothing, after a time in which every process has forgotten the end of the log.
 */
export async function deleteInOrder(
  log: { tenant: string; conversation: string },
  steps: DeletionSteps,
): Promise<{ events: number; actors: number }> {
  const removed = { events: 0, actors: 0 };
  for (let round = 1; round <= MAX_ROUNDS; round += 1) {
    await steps.unaddress();
    const actors = await steps.actors();
    const registers = await removeRegisters(log, steps);
    const events = await untilFewer(steps.step, () => steps.events());
    removed.actors += actors;
    removed.events += events;
    if (actors + registers + events === 0) return removed;
    if (events > 0) await steps.untilForgotten?.();
  }
  const message = `conversation ${log.conversation} is written to while it is removed; stop its agents and try again`;
  throw new TroupeError('store_unavailable', message, { ...log });
}

async function removeRegisters(log: { tenant: string; conversation: string }, steps: DeletionSteps) {
  const { tenant } = log;
  let removed = 0;
  for (const { shelf, before, isOwn, ...place } of placesOf(log.conversation)) {
    let after = place.after;
    await untilFewer(steps.step, async () => {
      const found = await steps.keys({ tenant, shelf, after, before, limit: steps.step });
      after = found.at(-1) ?? after;
      const own = found.filter(isOwn).map((key) => ({ tenant, shelf, key }));
      if (own.length > 0) await steps.registers(own);
      removed += own.length;
      return found.length;
    });
  }
  return removed;
}

/** Sums what `work` counts, until it is less than a full step. */
async function untilFewer(step: number, work: () => Promise<number>): Promise<number> {
  for (let sum = 0; ;) {
    const count = await work();
    sum += count;
    if (count < step) return sum;
  }
}
