import { expect, test } from 'vitest';
import { gated, inOrder, says } from '../support/engine-models.ts';
import { openStage, turns, until } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';

test('a stop aborts what does not end by itself, returns the lease, and counts no attempt', async () => {
  const driver = await openDriver();
  const hanging = gated(says('never'), 0);
  const stage = await openStage({
    driver,
    agents: [{ id: 'bo', model: hanging }],
    limits: { soleOwner: false },
  });
  await stage.say('c', 'hello', ['bo']);
  await until('the model is called', () => hanging.requests.length === 1);

  let isStopped = false;
  const stopped = stage.engine.stop().then(() => (isStopped = true));
  await stage.clock.advance(5_000);
  await turns(20);
  expect(isStopped).toBe(false);
  await stage.clock.advance(3_000);
  await stopped;
  const record = await stage.actor('c', 'bo');
  expect([record.owner, record.until, record.turn?.attempt]).toEqual(['', 0, 0]);

  const model = inOrder(says('here'));
  const next = await openStage({
    driver,
    clock: stage.clock,
    agents: [{ id: 'bo', model }],
    limits: { soleOwner: false },
  });
  await next.say('c', 'still there?', ['bo']);
  await next.quiet();
  expect((await next.events('c')).filter(({ kind }) => kind === 'turn.done')).toHaveLength(2);
  expect(await next.check('c')).toEqual([]);
});
