import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createPlayer, type EventTimes, type Speed, stepFrom } from '../../web/src/state/player.ts';

/** A player over events at these times, with a clock that moves by hand. What happens is written down. */
function stageOf(times: readonly number[], { isSlow = false } = {}) {
  const log: string[] = [];
  const due: { at: number; run: () => void }[] = [];
  let now = 0;
  let seq = 1;
  let isShown = true;
  const player = createPlayer({
    clock: {
      setTimeout(run, ms) {
        const timer = { at: now + ms, run };
        due.push(timer);
        return timer;
      },
      clearTimeout: (timer) => void due.splice(0, due.length, ...due.filter((each) => each !== timer)),
    },
    at: () => seq,
    goTo(to) {
      log.push(`${now}: ${to}`);
      seq = to;
      isShown = !isSlow;
      if (seq >= times.length) player.stop();
    },
    isShown: () => isShown,
    timesFrom: (from) => Promise.resolve({ first: from, at: times.slice(from - 1, from + 3) }),
    silence: (ms) => void (ms !== null && log.push(`${now}: silence of ${ms}`)),
  });
  return {
    log,
    player,
    jump: (to: number) => (seq = to),
    show: () => (isShown = true),
    /** Runs what is due within a time. */
    pass: async (ms: number): Promise<void> => {
      const end = now + ms;
      for (;;) {
        // A load of times is a promise that is resolved already.
        await new Promise(setImmediate);
        const [first] = due.toSorted((a, b) => a.at - b.at);
        if (!first || first.at > end) break;
        due.splice(due.indexOf(first), 1);
        now = first.at;
        first.run();
      }
      now = end;
    },
  };
}

const EVEN = Array.from({ length: 20 }, (_, index) => index * 1_000);

test('a replay steps event by event, four and sixteen times as fast on demand, and ends with the last', async () => {
  const found: Record<string, string[]> = {};
  for (const speed of ['1', '4', '16'] as const) {
    const { player, pass, log } = stageOf(EVEN);
    player.play(speed);
    await pass(800);
    found[speed] = log;
  }
  expect(found['1']).toEqual(['350: 2', '700: 3']);
  expect(found['4']).toEqual(['175: 3', '350: 5', '525: 7', '700: 9']);
  expect(found['16']).toEqual(['131.25: 7', '262.5: 13', '393.75: 19', '525: 25']);
});

test('as it was: the gaps are those of the log, and a long one takes two seconds and is said', async () => {
  const { player, pass, log } = stageOf([0, 500, 510, 520, 3_600_520, 3_601_520]);
  player.play('real');
  await pass(10_000);
  expect(log).toEqual(['500: 2', '620: 4', '620: silence of 3600000', '2620: 5', '3620: 6']);
});

test('a pause stops at the moment shown, and playing on begins there; another speed counts from now on', async () => {
  const { player, pass, log } = stageOf(EVEN);
  player.play('1');
  await pass(400);
  player.stop();
  await pass(5_000);
  player.play('1');
  await pass(350);
  player.play('4');
  await pass(175);
  expect(log).toEqual(['350: 2', '5750: 3', '5925: 5']);
});

test('a replay goes on from where the scrubber was moved, and does not run ahead of the screen', async () => {
  const moved = stageOf(EVEN);
  moved.player.play('1');
  await moved.pass(100);
  moved.jump(10);
  await moved.pass(600);
  expect(moved.log).toEqual(['700: 11']);
  const slow = stageOf(EVEN, { isSlow: true });
  slow.player.play('1');
  await slow.pass(2_000);
  expect(slow.log).toEqual(['350: 2']);
  slow.show();
  await slow.pass(100);
  expect(slow.log).toHaveLength(2);
});

test('every step of a replay goes forward, changes the address at most nine times in a second, and skips no long silence', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 9_000 }), { minLength: 2, maxLength: 60 }),
      fc.nat(50),
      fc.constantFrom<Speed>('1', '4', '16', 'real'),
      (gaps, from, speed) => {
        let time = 0;
        const times: EventTimes = { first: 1, at: gaps.map((gap) => (time += gap)) };
        const at = 1 + (from % gaps.length);
        const { to, wait, silence } = stepFrom(at, speed, times);
        expect(to).toBeGreaterThan(at);
        expect(wait).toBeGreaterThanOrEqual(1_000 / 9);
        expect(wait).toBeLessThanOrEqual(2_000);
        if (speed !== 'real') return;
        const long = gaps.slice(at, to).filter((gap) => gap > 2_000);
        expect(long).toHaveLength(silence === null ? 0 : 1);
      },
    ),
  );
});
