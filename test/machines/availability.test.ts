import { expect, test } from 'vitest';
import { Event } from '../../src/events/index.ts';
import {
  type Availability,
  type AvailabilityEvent,
  availabilityNoteOf,
  foldAvailability,
} from '../../src/machines/availability-fold.ts';
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

test.each(['recall', 'reinstate'])('a log with the command %s makes a retired agent available', (command) => {
  const place = { tenant: 'default', conversation: 'c', seq: 1, at: 1, tokens: 0 };
  const author = { kind: 'user', id: 'ana', name: 'Ana' };
  const body = { command, agent: 'bo' };
  const event = Event.parse({ ...place, id: 'e1', author, to: [], kind: 'command', body });
  const note = availabilityNoteOf(event);
  expect(note && foldAvailability('retired', note)).toBe('available');
});
