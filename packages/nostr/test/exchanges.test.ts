import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Exchanges } from '../src/exchanges.ts';

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

test('machines that answer each other through us are both told apart from people, however they take turns', () => {
  const say = opened(3);
  const told = Array.from({ length: 10 }, (_, n) => say(n % 2 === 0 ? 'x' : 'y'));
  expect(told).toEqual([null, null, null, null, null, null, 4, 4, 5, 5]);
});

test('an event that is tried again counts once', () => {
  const say = opened(1);
  expect([
    say('x', { id: 'a' }),
    say('x', { id: 'a' }),
    say('x', { id: 'b' }),
    say('x', { id: 'b' }),
  ]).toEqual([null, null, 2, 2]);
});

test('other conversations are counted by themselves', () => {
  const say = opened(1);
  expect(say('x')).toBeNull();
  expect(say('x', { conversation: 'd' })).toBeNull();
  expect(say('x')).toBe(2);
});

test('words to others begin anew for everybody, as does whoever comes back after a minute', () => {
  const say = opened(1);
  expect([say('x'), say('x')]).toEqual([null, 2]);
  expect(say('person', { isToUs: false })).toBeNull();
  expect([say('x'), say('x')]).toEqual([null, 2]);
  expect(say('x', { afterMs: 60_001 })).toBeNull();
});

test('with whatever pauses below a minute, nobody goes on for ever', () => {
  const pauses = fc.array(fc.integer({ min: 1, max: 20_000 }), { minLength: 40, maxLength: 120 });
  fc.assert(
    fc.property(pauses, (gaps) => {
      const say = opened(5);
      const told = gaps.map((afterMs, n) => say(['x', 'y', 'z'][n % 3] ?? '', { afterMs }));
      expect(told.filter((each) => each === null)).toHaveLength(15);
    }),
  );
});
