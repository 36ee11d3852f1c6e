import { TroupeError } from '../../base/errors.ts';
import type { ActorAddress } from '../../events/index.ts';
import {
  type Availability,
  availabilityOf,
  type AvailabilityEvent,
  unavailabilityIn,
} from '../../machines/availability-fold.ts';
import { nextAvailability } from '../../machines/availability.ts';
import type { EngineDeps } from './engine-deps.ts';

/** A refused event changes nothing. */
export type AvailabilityChange =
  | { kind: 'changed'; state: Availability }
  | { kind: 'refused'; state: Availability };

/**
 * Sends an event to the availability machine of an agent and stores the next state. Each write names the state that it
 * was computed from, so of two concurrent events the second applies to the result of the first.
 */
export async function changeAvailability(
  { store }: Pick<EngineDeps, 'store'>,
  address: ActorAddress,
  event: AvailabilityEvent,
): Promise<AvailabilityChange> {
  for (;;) {
    const from = await readAvailability(store, address);
    const state = nextAvailability(from === 'unreadable' ? unreadableFor(event) : from, event);
    if (state === null) return { kind: 'refused', state: from === 'unreadable' ? 'failed' : from };
    const expected = from === 'unreadable' ? undefined : unavailabilityIn(from);
    if (await store.park(address, unavailabilityIn(state), expected)) return { kind: 'changed', state };
  }
}

async function readAvailability(
  store: EngineDeps['store'],
  address: ActorAddress,
): Promise<Availability | 'unreadable'> {
  try {
    return availabilityOf((await store.readActor(address))?.parked ?? null);
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'actor_corrupt') return 'unreadable';
    throw error;
  }
}

/** An agent with an unreadable record counts as failed, except for the event that makes it fail. */
function unreadableFor({ type }: AvailabilityEvent): Availability {
  return type === 'BREAK' ? 'available' : 'failed';
}
