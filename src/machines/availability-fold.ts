import type { AgentId, Event, Unavailability } from '../events/index.ts';

/**
 * The transitions of the machine in `availability.ts`, and its state folded from a log. Without XState, because the
 * inspector folds logs in browsers too.
 */
export type AvailabilityEvent =
  | { type: 'PAUSE' }
  | { type: 'RESUME' }
  | { type: 'BREAK' }
  | { type: 'RETRY' }
  | { type: 'RETIRE' }
  | { type: 'REINSTATE' };

export type Availability = 'available' | Unavailability;

export const AVAILABILITY_STATES = {
  available: { on: { PAUSE: 'paused', BREAK: 'failed', RETIRE: 'retired' } },
  paused: { on: { RESUME: 'available', BREAK: 'failed', RETIRE: 'retired' } },
  failed: { on: { RESUME: 'available', RETRY: 'available', RETIRE: 'retired' } },
  retired: { on: { REINSTATE: 'available' } },
} as const;

export function availabilityOf(parked: Unavailability | null): Availability {
  return parked ?? 'available';
}

export function unavailabilityIn(state: Availability): Unavailability | null {
  return state === 'available' ? null : state;
}

/** Id of the runtime's notice that an agent has failed. */
const FAILED_NOTICE = /^failed:([^:]+):/;

const COMMANDS: Partial<Record<string, readonly AvailabilityEvent['type'][]>> = {
  pause: ['PAUSE'],
  // Earlier versions logged `resume` or `recall` for a paused or a retired agent alike.
  resume: ['RESUME', 'REINSTATE'],
  recall: ['REINSTATE', 'RESUME'],
  reinstate: ['REINSTATE', 'RESUME'],
  retry: ['RETRY'],
  retire: ['RETIRE'],
};

/** The machine events that one event of the log may mean. The first one that the agent's state accepts counts. */
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

export function foldAvailability(from: Availability, { types }: AvailabilityNote): Availability {
  const accepted: Partial<Record<AvailabilityEvent['type'], Availability>> = AVAILABILITY_STATES[from].on;
  for (const type of types) if (accepted[type]) return accepted[type];
  return from;
}
