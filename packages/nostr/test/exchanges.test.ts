import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Exchanges } from '../src/intake.ts';

function opened(most: number) {
  const clock = { at: 0, monotonic: () => clock.at };
  const exchanges = new Exchanges(most, clock);
  let events = 0;
  const say = (
    pubkey: string,
    { afterMs = 1_000, isToUs = true, conversation = 'c', id = `e${events++}` } = {},
  ) => {
    clock.at += afterMs;
    return exchanges.tooMany({ conversation, pubkey, id, isToUs });
  };
  return say;
}

test('two machines that answer each other through us are both detected, however they take turns', () => {
  const say = opened(3);
  const counts = Array.from({ length: 10 }, (_, n) => say(n % 2 === 0 ? 'x' : 'y'));
  expect(counts).toEqual([null, null, null, null, null, null, 4, 4, 5, 5]);
});

test('a retried event counts once', () => {
  const say = opened(1);
  expect([
    say('x', { id: 'a' }),
    say('x', { id: 'a' }),
    say('x', { id: 'b' }),
    say('x', { id: 'b' }),
  ]).toEqual([null, null, 2, 2]);
});

test('each conversation has its own counts', () => {
  const say = opened(1);
  expect(say('x')).toBeNull();
  expect(say('x', { conversation: 'd' })).toBeNull();
  expect(say('x')).toBe(2);
});

test('an event to others resets all counts, and so does an author after a pause of a minute', () => {
  const say = opened(1);
  expect([say('x'), say('x')]).toEqual([null, 2]);
  expect(say('person', { isToUs: false })).toBeNull();
  expect([say('x'), say('x')]).toEqual([null, 2]);
  expect(say('x', { afterMs: 60_001 })).toBeNull();
});

test('no exchange goes on forever, whatever its pauses below a minute', () => {
  const pauses = fc.array(fc.integer({ min: 1, max: 20_000 }), { minLength: 40, maxLength: 120 });
  fc.assert(
    fc.property(pauses, (gaps) => {
      const say = opened(5);
      const counts = gaps.map((afterMs, n) => say(['x', 'y', 'z'][n % 3] ?? '', { afterMs }));
      expect(counts.filter((each) => each === null)).toHaveLength(15);
    }),
  );
});
