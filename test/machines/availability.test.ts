import { expect, test } from 'vitest';
import { type Availability, type AvailabilityEvent } from '../../src/machines/availability-fold.ts';
import { nextAvailability } from '../../src/machines/availability.ts';

const EVENTS: AvailabilityEvent['type'][] = ['PAUSE', 'RESUME', 'BREAK', 'RETRY', 'RETIRE', 'REINSTATE'];

test.each<[Availability, Partial<Record<AvailabilityEvent['type'], Availability>>]>([
  ['available', { PAUSE: 'paused', BREAK: 'failed', RETIRE: 'retired' }],
  ['paused', { RESUME: 'available', BREAK: 'failed', RETIRE: 'retired' }],
  ['failed', { RESUME: 'available', RETRY: 'available', RETIRE: 'retired' }],
  ['retired', { REINSTATE: 'available' }],
])('an agent that is %s accepts what is listed, and nothing else', (from, accepted) => {
  for (const type of EVENTS) expect(nextAvailability(from, { type }), type).toBe(accepted[type] ?? null);
});
