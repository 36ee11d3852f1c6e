import { expect, test } from 'vitest';
import { forever, storeAway, tapDriver } from '../support/engine-driver.ts';
import { inOrder, modelOf, says } from '../support/engine-models.ts';
import { openStage, turns } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';

test.each(['acquire', 'step'] as const)(
  'a lease whose %s was done but not acknowledged does not lock out its own process until it expires',
  async (lost) => {
    let lose = true;
    const driver = tapDriver(await openDriver(), (op, phase) => {
      if (!lose || op !== lost || phase !== 'after') return;
      lose = false;
      throw storeAway('the answer is lost');
    });
    const model = inOrder(says('one'));
    const stage = await openStage({ driver, agents: [{ id: 'bo', model }], limits: { soleOwner: true } });
    await stage.say('c', 'hello', ['bo']);
    await turns(200);
    // Long enough for the next try, but much shorter than the lease.
    await stage.clock.advance(2_000);
    await turns(200);
    expect(stage.deps.limits.leaseMs).toBeGreaterThan(5_000);
    expect((await stage.events('c')).at(-1)?.kind).toBe('turn.done');
    await stage.quiet();
    expect(await stage.check('c')).toEqual([]);
  },
);

test('a holder whose store stops answering aborts its model call when the lease expires', async () => {
  const isRenewal = (change: unknown) => Object.keys(change as object).join() === 'until';
  const driver = tapDriver(await openDriver(), async (op, phase, args) => {
    if (op === 'compareAndSet' && phase === 'before' && isRenewal(args[2])) await forever();
  });
  const reached = Promise.withResolvers<AbortSignal>();
  const model = modelOf(async function* (_, signal) {
    reached.resolve(signal);
    await forever();
    yield { type: 'start' };
  });
  const stage = await openStage({ driver, agents: [{ id: 'bo', model }], limits: { leaseMs: 30_000 } });
  await stage.say('c', 'hello', ['bo']);
  const signal = await reached.promise;
  await stage.clock.advance(25_000);
  expect(signal).toMatchObject({ aborted: false });
  await stage.clock.advance(10_000);
  expect(signal).toMatchObject({ aborted: true, reason: { code: 'lease_lost' } });
});
