import fc from 'fast-check';
import { expect, test } from 'vitest';
import { modelOf, says, shown, times } from '../support/engine-models.ts';
import { openStage, turns } from '../support/engine-stage.ts';

const RUNS = 200;

/** Position of the second message in the life of the first turn: rounds of the event loop, and time in between. */
const play = fc.record({
  // The time before the pin is short; a third of the runs aim at it, so that both outcomes always occur.
  rounds: fc.oneof(fc.constant(0), fc.nat(4), fc.nat(30)),
  apartMs: fc.constantFrom(0, 1, 3, 3, 3, 8),
  thinksMs: fc.nat(6),
  order: fc.constantFrom('wait', 'at once'),
});

test(`two messages 3 ms apart to an idle agent: one turn covers both, or two in order (${RUNS} interleavings)`, async () => {
  const seen = { one: 0, two: 0 };
  await fc.assert(
    fc.asyncProperty(play, async ({ rounds, apartMs, thinksMs, order }) => {
      const model = modelOf(async function* () {
        for (const event of says('an', 'swer')) {
          await stage.clock.sleep(thinksMs);
          yield event;
        }
      });
      const stage = await openStage({ agents: [{ id: 'bo', model }] });
      const first = stage.say('c', 'message-one', ['bo']);
      if (order === 'wait') await first;
      await turns(rounds);
      await stage.clock.advance(apartMs);
      await Promise.all([first, stage.say('c', 'message-two', ['bo'])]);
      await stage.quiet();
      expect(await stage.check('c')).toEqual([]);
      const last = shown(model.requests.at(-1));
      for (const word of ['message-one', 'message-two']) expect(times(last, word)).toBe(1);
      expect(last.indexOf('message-one')).toBeLessThan(last.indexOf('message-two'));
      expect(model.requests.length).toBeLessThanOrEqual(2);
      seen[model.requests.length === 1 ? 'one' : 'two']++;
      await stage.driver.close();
    }),
    { numRuns: RUNS },
  );
  expect(seen.one).toBeGreaterThan(0);
  expect(seen.two).toBeGreaterThan(0);
});
