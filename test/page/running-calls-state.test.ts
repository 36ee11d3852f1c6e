import { expect, test } from 'vitest';
import type { Told } from '../../src/events/index.ts';
import { type RunningCall, withNote } from '../../web/src/state/running-calls.ts';

const after = (...notes: (Told & { attempt?: number; step?: number })[]) =>
  notes.reduce<readonly RunningCall[]>(
    (calls, note) => withNote(calls, { attempt: 1, step: 1, ...note }),
    [],
  );
const called = { type: 'called', call: 'call_0', name: 'copy', args: '{}' } as const;
const result = { type: 'result', call: 'call_0', name: 'copy', outcome: 'done', text: 'ok' } as const;

test('calls of two steps with the same id are two calls', () => {
  const calls = after(called, result, { ...called, step: 2 });
  expect(calls.map(({ step, status }) => [step, status])).toEqual([
    [1, 'done'],
    [2, 'running'],
  ]);
});

test('calls of a process that has died go when another one begins the next attempt', () => {
  const calls = after(called, { ...called, call: 'call_1' }, { ...called, attempt: 2 });
  expect(calls.map(({ attempt, call }) => [attempt, call])).toEqual([[2, 'call_0']]);
});

test('a failed model call takes the calls that it was writing with it', () => {
  const writing = { type: 'arguments', call: 'call_1', name: 'copy', index: 0, text: '{' } as const;
  const calls = after(called, writing, { type: 'void', reason: 'busy', all: false });
  expect(calls.map(({ call }) => call)).toEqual(['call_0']);
});
