import fc from 'fast-check';
import { expect, test } from 'vitest';
import { conversationState } from '../../src/actors/conversations/conversation-state.ts';
import { createTaskFolds } from '../../src/actors/log/tasks.ts';
import type { Event } from '../../src/events/index.ts';
import type { ConversationKey } from '../../src/store/store.ts';

const PAGE = 500;
const LOG = { tenant: 'default', conversation: 'c' } as ConversationKey;

/** A log that counts the events read from it. */
function logOf(events: Event[]) {
  let read = 0;
  return {
    events,
    readPage: (_: ConversationKey, { after }: { after: number }) => {
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

function statesOf(source: Parameters<typeof createTaskFolds>[0]) {
  const folds = createTaskFolds(source);
  return { of: async (log: ConversationKey) => conversationState((await folds.of(log)).fold) };
}

function eventAt(seq: number, [kind, body]: readonly [string, object], log = 'a'): Event {
  const more = { author: { kind: 'user', id: 'ana' }, to: [], at: seq, conversation: 'c' };
  return { seq, id: `${log}${seq}`, kind, body, ...more } as unknown as Event;
}

const KINDS = [
  ['message', { content: 'x' }],
  ['mode.changed', { mode: 'run', run: 'r1' }],
  ['mode.changed', { mode: 'run' }],
  ['mode.changed', { mode: 'chat' }],
  ['mode.changed', { mode: 'agent' }],
  ['run.directive', { run: 'r1', directive: 'go', status: 'active' }],
  ['run.directive', { run: 'r2', directive: 'stop', status: 'active' }],
  ['phase.changed', { phase: 'build' }],
  ['delegation.opened', { delegation: 'd1', group: 'd1', join: 'all', thread: 't' }],
  ['delegation.ended', { delegation: 'd1', outcome: 'done' }],
  ['command', { command: 'archive' }],
  ['command', { command: 'reopen' }],
] as const;

test('repeated incremental reads give the same state as one read of the whole log', async () => {
  const looks = fc.array(fc.tuple(fc.constantFrom(...KINDS), fc.boolean()), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(looks, async (steps) => {
      const log = logOf([]);
      const known = statesOf(log);
      for (const [kind, looked] of steps) {
        log.events.push(eventAt(log.events.length + 1, kind));
        if (looked) expect(await known.of(LOG)).toEqual(await statesOf(log).of(LOG));
      }
    }),
    { numRuns: 200 },
  );
});

test('a second read reads only the new events and one more, however long the log is', async () => {
  const log = logOf(Array.from({ length: 5_001 }, (_, index) => eventAt(index + 1, KINDS[0])));
  const states = statesOf(log);
  await states.of(LOG);
  expect(log.takeRead()).toBe(5_001);
  log.events.push(eventAt(5_002, ['mode.changed', { mode: 'chat' }]));
  expect(await states.of(LOG)).toMatchObject({ mode: 'chat' });
  expect(log.takeRead()).toBe(2);
});

test.each([1, 2, 3, 9])(
  'a conversation deleted and begun again with %i events is a new one',
  async (count) => {
    const log = logOf([1, 2, 3].map((seq) => eventAt(seq, ['phase.changed', { phase: 'build' }])));
    const states = statesOf(log);
    expect(await states.of(LOG)).toMatchObject({ phase: 'build' });
    log.events.splice(
      0,
      3,
      ...Array.from({ length: count }, (_, index) => eventAt(index + 1, KINDS[0], 'b')),
    );
    expect(await states.of(LOG)).toMatchObject({ phase: null });
  },
);

test('a delegation reported as completed and then as aborted ends once, and the other one stays open', async () => {
  const opened = (delegation: string) =>
    ['delegation.opened', { delegation, group: delegation, join: 'all', thread: `c.${delegation}` }] as const;
  const log = logOf(
    [
      opened('d1'),
      opened('d2'),
      ['delegation.ended', { delegation: 'd1', outcome: 'done' }] as const,
      ['delegation.ended', { delegation: 'd1', outcome: 'cancelled' }] as const,
    ].map((each, index) => eventAt(index + 1, each)),
  );
  expect(await statesOf(log).of(LOG)).toMatchObject({ state: 'open.agent', openDelegations: 1 });
});
