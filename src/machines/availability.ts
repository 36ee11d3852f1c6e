import { initialTransition, setup, transition } from 'xstate';
import type { Parked } from '../events/index.ts';

/**
 * Whether an agent takes turns in one conversation. People decide it, and so does what sets an agent aside (`BREAK`); its
 * turns do not. It runs beside the turn: who is paused at work ends that turn and begins no other.
 */
export type AvailabilityEvent =
  | { type: 'PAUSE' }
  | { type: 'RESUME' }
  | { type: 'BREAK' }
  | { type: 'RETRY' }
  | { type: 'RETIRE' }
  | { type: 'REINSTATE' };

export const availability = setup({ types: { events: {} as AvailabilityEvent } }).createMachine({
  id: 'availability',
  initial: 'available',
  states: {
    available: { on: { PAUSE: 'paused', BREAK: 'failed', RETIRE: 'retired' } },
    paused: { on: { RESUME: 'available', BREAK: 'failed', RETIRE: 'retired' } },
    failed: { on: { RESUME: 'available', RETRY: 'available', RETIRE: 'retired' } },
    retired: { on: { REINSTATE: 'available' } },
  },
});

export type Availability = 'available' | Parked;

const [START] = initialTransition(availability);

/** Where an event leads; null where it is not accepted. */
export function nextAvailability(from: Availability, event: AvailabilityEvent): Availability | null {
  const snapshot = availability.resolveState({ ...START, value: from, context: {} });
  if (!snapshot.can(event)) return null;
  return transition(availability, snapshot, event)[0].value;
}

export function availabilityOf(parked: Parked | null): Availability {
  return parked ?? 'available';
}

export function parkedIn(state: Availability): Parked | null {
  return state === 'available' ? null : state;
}
