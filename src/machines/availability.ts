import { initialTransition, setup, transition } from 'xstate';
import type { AgentId, Event, Parked } from '../events/index.ts';

/**
 * Whether an agent takes turns in one conversation. People decide it, and so does a failure that no repetition can mend
 * (`BREAK`). It runs beside the turn: an agent that is paused during a turn ends that turn and begins no other.
 *  A1  Whatever changes the availability of an agent, or shows it, sends this machine an event.
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

/** The state after an event; null if the event is not accepted. */
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

/** Id of the runtime's notice that an agent has failed. */
const FAILED_NOTICE = /^failed:([^:]+):/;

const COMMANDS: Partial<Record<string, readonly AvailabilityEvent['type'][]>> = {
  pause: ['PAUSE'],
  // Earlier versions logged either word for an agent that comes back.
  resume: ['RESUME', 'REINSTATE'],
  recall: ['REINSTATE', 'RESUME'],
  retry: ['RETRY'],
  retire: ['RETIRE'],
};

/** An event of the log as what it sends to the machine of an agent: the first type that the state accepts. */
export interface AvailabilityNote {
  agent: AgentId;
  types: readonly AvailabilityEvent['type'][];
}

export function availabilityNoteOf(event: Event): AvailabilityNote | null {
  if (event.kind === 'command') {
    const { agent, command } = event.body;
    const types = COMMANDS[command];
    return agent !== undefined && types ? { agent, types } : null;
  }
  if (event.kind !== 'error' || event.author.kind !== 'system') return null;
  const agent = FAILED_NOTICE.exec(event.id)?.[1];
  return agent === undefined ? null : { agent: agent as AgentId, types: ['BREAK'] };
}

/** The availability that the log tells of, after one more event. */
export function foldAvailability(from: Availability, { types }: AvailabilityNote): Availability {
  for (const type of types) {
    const next = nextAvailability(from, { type });
    if (next !== null) return next;
  }
  return from;
}
