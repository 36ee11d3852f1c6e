import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createConversationStates } from '../../src/actors/conversations/conversation-states.ts';
import type { Event } from '../../src/events/index.ts';
import type { Log } from '../../src/store/store.ts';

const PAGE = 500;
const LOG = { tenant: 'default', conversation: 'c' } as Log;

/** A log that says how many events were read of it. */
function logOf(events: Event[]) {
  let read = 0;
  return {
    events,
    readPage: (_: Log, { after }: { after: number }) => {
      const found = events.filter(({ seq }) => seq > after).slice(0, PAGE);
      read += found.length;
      return Promise.resolve({ events: found, isLast: found.length < PAGE });
    },
    takeRead: () => {
      const count = read;
      read = 0;
      return count;
    },
  };
}

function eventAt(seq: number, [kind, body]: readonly [string, object], log = 'a'): Event {
  return { seq, id: `${log}${seq}`, kind, body } as unknown as Event;
}

const KINDS = [
  ['message', { content: 'x' }],
  ['mode.changed', { mode: 'run', run: 'r1' }],
  ['mode.changed', { mode: 'run' }],
  ['mode.changed', { mode: 'chat' }],
  ['mode.changed', { mode: 'agent' }],
  ['run.directive', { run: 'r1', directive: 'go', steps: [], step: 1 }],
  ['run.directive', { run: 'r2', directive: 'stop', steps: [], step: 2 }],
  ['phase.changed', { phase: 'build' }],
  ['delegation.opened', {}],
  ['delegation.completed', {}],
  ['archived', {}],
  ['reopened', {}],
] as const;

test('whoever looks again and again sees what one who looks for the first time does', async () => {
  const looks = fc.array(fc.tuple(fc.constantFrom(...KINDS), fc.boolean()), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(looks, async (steps) => {
      const log = logOf([]);
      const known = createConversationStates(log);
      for (const [kind, looked] of steps) {
        log.events.push(eventAt(log.events.length + 1, kind));
        if (looked) expect(await known.of(LOG)).toEqual(await createConversationStates(log).of(LOG));
      }
    }),
    { numRuns: 200 },
  );
});

test('a second look reads what is new and one event more, however long the log is', async () => {
  const log = logOf(Array.from({ length: 5_001 }, (_, index) => eventAt(index + 1, KINDS[0])));
  const states = createConversationStates(log);
  await states.of(LOG);
  expect(log.takeRead()).toBe(5_001);
  log.events.push(eventAt(5_002, ['mode.changed', { mode: 'chat' }]));
  expect(await states.of(LOG)).toMatchObject({ mode: 'chat' });
  expect(log.takeRead()).toBe(2);
});

test.each([1, 2, 3, 9])(
  'a conversation that was deleted, and begun again with %i events, is another one',
  async (count) => {
    const log = logOf([1, 2, 3].map((seq) => eventAt(seq, ['phase.changed', { phase: 'build' }])));
    const states = createConversationStates(log);
    expect(await states.of(LOG)).toMatchObject({ phase: 'build' });
    log.events.splice(
      0,
      3,
      ...Array.from({ length: count }, (_, index) => eventAt(index + 1, KINDS[0], 'b')),
    );
    expect(await states.of(LOG)).toMatchObject({ phase: null });
  },
);
