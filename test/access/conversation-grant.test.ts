import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { covers, isGranted } from '../../src/library/access/index.ts';

const LONG = 'r'.repeat(120);
/** Of few letters, so that prefixes overlap; some are long enough to be shortened in the id of a thread. */
const Id = fc
  .tuple(
    fc.string({ unit: fc.constantFrom('a', 'b', '-', '.'), maxLength: 4 }),
    fc.constantFrom(0, 0, 0, 98, 110),
  )
  .map(([end, long]) => `a${'x'.repeat(long)}${end}`);
const Thread = fc.tuple(Id, fc.stringMatching(/^[0-9a-f]{12}$/)).map(([id, task]) => `${id}.d-${task}`);
const Pattern = fc.oneof(
  Id,
  Id.map((id) => `${id}*`),
  fc.constant('*'),
);
const Patterns = fc.array(Pattern, { maxLength: 3 });

test('covering a pattern grants all its conversations, with their threads', () => {
  fc.assert(
    fc.property(Patterns, Pattern, fc.oneof(Id, Thread), (conversations, pattern, id) => {
      fc.pre(covers({ conversations }, pattern) && isGranted({ conversations: [pattern] }, id));
      expect(isGranted({ conversations }, id)).toBe(true);
    }),
    { numRuns: 3_000 },
  );
});

test('ids and prefixes grant exactly their matches', () => {
  fc.assert(
    fc.property(Patterns, Id, (conversations, id) => {
      const meant = conversations.some((each) =>
        each.endsWith('*') ? id.startsWith(each.slice(0, -1)) : id === each,
      );
      expect(isGranted({ conversations }, id)).toBe(meant);
    }),
    { numRuns: 3_000 },
  );
});

test('an id that equals the stem of a long one does not grant its threads', () => {
  const hash = createHash('sha256').update(LONG).digest('hex').slice(0, 8);
  const stem = `${LONG.slice(0, 91)}.${hash}`;
  const thread = `${stem}.d-0123456789ab`;
  expect(isGranted({ conversations: [LONG] }, thread)).toBe(true);
  const own = { conversations: [`${LONG.slice(0, 91)}.*`] };
  expect([isGranted(own, thread), covers(own, stem)]).toEqual([false, true]);
  expect(isGranted({ conversations: [stem] }, thread)).toBe(false);
  expect(isGranted({ conversations: [stem] }, stem)).toBe(true);
});

test('a prefix grants the threads of an id of exactly 100 characters', () => {
  const root = `${LONG.slice(0, 99)}b`;
  const thread = `${root}.d-0123456789ab`;
  for (const pattern of [root, `${root}*`, `${root.slice(0, 99)}*`, `${root.slice(0, 91)}*`])
    expect([pattern, isGranted({ conversations: [pattern] }, thread)]).toEqual([pattern, true]);
});

test('an empty list grants nothing, and no list grants all', () => {
  expect(isGranted({ conversations: [] }, 'a')).toBe(false);
  expect(covers({ conversations: [] }, 'a')).toBe(false);
  expect(isGranted({ conversations: null }, 'a')).toBe(true);
  expect(covers({ conversations: null }, '*')).toBe(true);
  expect(covers({ conversations: ['a'] }, 'a*')).toBe(false);
  expect(covers({ conversations: ['a*'] }, '*')).toBe(false);
});
