import { expect, test } from 'vitest';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { mortal } from '../support/engine-driver.ts';
import { gated, inOrder, says } from '../support/engine-models.ts';
import { openStage, turns } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';

test('messages whose wakes are all lost are answered after the next sweep', async () => {
  let lost = 0;
  const model = inOrder(says('found'));
  const stage = await openStage({
    agents: [{ id: 'bo', model }],
    router: (router) => ({
      ...router,
      wake: (address, options) => (lost++ < 3 ? Promise.resolve() : router.wake(address, options)),
    }),
  });
  await turns(3);
  for (const word of ['one', 'two', 'three']) await stage.say('c', word, ['bo']);
  await turns(20);
  expect(model.requests).toHaveLength(0);
  await stage.clock.advance(stage.deps.limits.sweepMs * 1.3);
  await stage.quiet();
  expect(model.requests).toHaveLength(1);
  expect(await stage.check('c')).toEqual([]);
});

test('a start finds the work of a dead process, however old and however much, and answers it once', async () => {
  const CONVERSATIONS = 1_200;
  const driver = await openDriver();
  const clock = createFakeClock();
  const dead = mortal(driver);
  const asleep = await openStage({
    driver: dead.driver,
    clock,
    agents: [{ id: 'bo', model: gated(says('x'), 0) }],
    router: (router) => ({ ...router, wake: () => Promise.resolve() }),
  });
  for (let i = 0; i < CONVERSATIONS; i++) await asleep.say(`c${i}`, 'hello', ['bo']);
  dead.kill();
  await clock.advance(48 * 3_600_000);

  const model = inOrder(says('here'));
  const stage = await openStage({ driver, clock, agents: [{ id: 'bo', model }] });
  await stage.quiet();
  await clock.advance(stage.deps.limits.sweepMs * 2.6);
  await stage.quiet();
  expect(model.requests).toHaveLength(CONVERSATIONS);
  for (let i = 0; i < CONVERSATIONS; i += 100) expect(await stage.check(`c${i}`)).toEqual([]);
});
