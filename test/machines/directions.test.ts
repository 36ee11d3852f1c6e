import { expect, test } from 'vitest';
import { modeItems } from '../../src/context/index.ts';
import type { Event } from '../../src/events/index.ts';
import {
  type Directives,
  directiveOf,
  foldDirections,
  foldDirective,
  NO_DIRECTIONS,
} from '../../src/machines/directions.ts';

type Told = ['mode', run?: string] | ['directive', run: string, directive: string, status?: 'completed'];

function directiveAfter(...log: Told[]) {
  let directions = NO_DIRECTIONS;
  const directives: Directives = new Map();
  for (const told of log) {
    const [kind, run] = told;
    const event =
      kind === 'mode'
        ? { kind: 'mode.changed', body: { mode: 'run', ...(run !== undefined && { run }) } }
        : {
            kind: 'run.directive',
            body: { run, directive: told[2], brief: 'do it', status: told[3] ?? 'active' },
          };
    directions = foldDirections(directions, event as Event);
    foldDirective(directives, event as Event);
  }
  return directiveOf(directions, directives);
}

test('the directive is that of the run which the mode names, whatever other runs got later', () => {
  expect(directiveAfter(['directive', 'a', 'A'], ['mode', 'a'], ['directive', 'b', 'B'])?.directive).toBe(
    'A',
  );
  expect(directiveAfter(['mode', 'a'], ['directive', 'a', 'A'], ['mode', 'b'])).toBeNull();
});

test('if the mode names no run the last directive applies', () => {
  expect(directiveAfter(['mode'], ['directive', 'a', 'A'], ['directive', 'b', 'B'])?.directive).toBe('B');
  expect(directiveAfter(['mode'])).toBeNull();
});

test('the brief is shown while its step is active, and only the directive afterwards', () => {
  const active = directiveAfter(['mode'], ['directive', 'a', 'ship it']);
  expect(modeItems('run', active, null)).toEqual({
    mode: 'run: do the step of the run',
    run: 'a: ship it\nthe step: do it',
  });
  const completed = directiveAfter(['mode'], ['directive', 'a', 'ship it', 'completed']);
  expect(modeItems('run', completed, null)['run']).toBe(
    'a: ship it (the step is completed: answer what is asked about it, and do no more of it unless told to)',
  );
  expect(Object.keys(modeItems('chat', active, null))).toEqual(['mode']);
  expect(modeItems(null, null, null)).toEqual({});
});
