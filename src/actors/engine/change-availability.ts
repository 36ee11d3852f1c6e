import { TroupeError } from '../../errors.ts';
import type { ActorAddress } from '../../events/index.ts';
import {
  type Availability,
  availabilityOf,
  type AvailabilityEvent,
  unavailabilityIn,
} from '../../machines/availability-fold.ts';
import { nextAvailability } from '../../machines/availability.ts';
import type { EngineDeps } from './engine-deps.ts';

/** What came of it: an event that is not accepted changes nothing. */
export type AvailabilityChange =
  | { kind: 'changed'; state: Availability }
  | { kind: 'refused'; state: Availability };

/**
 * Sends the availability of an agent an event, and keeps where it leads. Each write names what it was reached from: of
 * two events at once the second is sent to what the first has come to.
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

/** An agent whose record cannot be read is being set aside, or counts as set aside. */
function unreadableFor({ type }: AvailabilityEvent): Availability {
  return type === 'BREAK' ? 'available' : 'failed';
}
