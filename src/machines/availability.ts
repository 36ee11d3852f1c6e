import { initialTransition, setup, transition } from 'xstate';
import { type Availability, AVAILABILITY_STATES, type AvailabilityEvent } from './availability-fold.ts';

/**
 * Whether an agent takes turns in one conversation. People change it, and so does a failure that no retry can fix
 * (`BREAK`). It is independent of the turn: an agent that is paused during a turn ends that turn and begins no other.
 *  A1  Every change of an agent's availability is an event that this machine accepted. The inspector, which runs in
 *      browsers without XState, reads the same transitions (`availability-fold.ts`).
 */
export const availability = setup({ types: { events: {} as AvailabilityEvent } }).createMachine({
  id: 'availability',
  initial: 'available',
  states: AVAILABILITY_STATES,
});

const [START] = initialTransition(availability);

/** The state after an event; null if the event is not accepted. */
export function nextAvailability(from: Availability, event: AvailabilityEvent): Availability | null {
  const snapshot = availability.resolveState({ ...START, value: from, context: {} });
  if (!snapshot.can(event)) return null;
  return transition(availability, snapshot, event)[0].value;
}
