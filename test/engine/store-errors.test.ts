import { expect, test } from 'vitest';
import { createStore } from '../../src/store/create-store.ts';
import { storeAway, type StoreOp, tapDriver } from '../support/engine-driver.ts';
import { inOrder, says } from '../support/engine-models.ts';
import { allEvents, checkStore, openStage, turns } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';

test('an append whose acknowledgement was lost is seen when it is repeated, though this process does not know it wrote it', async () => {
  const driver = await openDriver();
  let lose = false;
  const tapped = tapDriver(driver, (op, phase) => {
    if (!lose || op !== 'append' || phase !== 'after') return;
    lose = false;
    throw storeAway('the answer is lost');
  });
  const model = inOrder(says('one'), says('two'));
  const stage = await openStage({ driver: tapped, agents: [{ id: 'bo', model }] });
  await stage.say('c', 'first', ['bo'], 'm1');
  await stage.quiet();
  lose = true;
  await expect(stage.say('c', 'second', ['bo'], 'm2')).rejects.toMatchObject({ code: 'store_unavailable' });
  await stage.say('c', 'second', ['bo'], 'm2');
  await turns(200);
  expect(model.requests).toHaveLength(2);
  await stage.quiet();
  expect(await stage.check('c')).toEqual([]);
});

test('an append of another process is seen, though this process has cached the tail of its own', async () => {
  const driver = await openDriver();
  const model = inOrder(says('one'), says('two'));
  const limits = { soleOwner: false };
  const stage = await openStage({ driver, agents: [{ id: 'bo', model }], limits });
  await stage.say('c', 'first', ['bo']);
  await stage.quiet();
  const other = await openStage({
    driver,
    limits,
    agents: [{ id: 'bo', model: inOrder(says('-')) }],
    router: (router) => ({ ...router, wake: () => Promise.resolve() }),
  });
  await other.say('c', 'second', ['bo']);
  await stage.clock.advance(stage.deps.limits.sweepMs * 1.5);
  await turns(200);
  expect(model.requests).toHaveLength(2);
  await stage.quiet();
  expect(await stage.check('c')).toEqual([]);
});

/** Fails every store operation of a turn once, before or after it takes effect. */
async function failingOnce(op: StoreOp, phase: 'before' | 'after', nth: number): Promise<boolean> {
  const driver = await openDriver();
  let seen = 0;
  let failed = false;
  const tapped = tapDriver(driver, (at, when) => {
    if (at !== op || when !== phase || failed || seen++ < nth) return;
    failed = true;
    throw storeAway(`${op} ${phase}`);
  });
  const model = inOrder(says('answer'));
  const stage = await openStage({ driver: tapped, agents: [{ id: 'bo', model }] });
  for (;;) {
    const sent = await stage.say('c', 'go', ['bo'], 'm1').then(
      () => true,
      () => false,
    );
    if (sent) break;
  }
  await stage.quiet();
  await stage.clock.advance(stage.deps.limits.sweepMs * 2.6 + stage.deps.limits.leaseMs);
  await stage.quiet();
  const store = createStore(driver);
  expect(await checkStore(store, 'c'), `${op} failing ${phase} it was done, number ${nth}`).toEqual([]);
  const replies = (await allEvents(store, 'c')).filter(({ id }) => id.endsWith(':reply'));
  expect(replies).toHaveLength(1);
  return failed;
}

test.each<StoreOp>(['append', 'readEvents', 'head', 'acquire', 'step', 'due', 'readActor'])(
  '%s failing once, at each of its calls, before or after its effect, loses and repeats nothing',
  async (op) => {
    for (const phase of ['before', 'after'] as const) {
      for (let nth = 0; await failingOnce(op, phase, nth); nth++);
    }
  },
  60_000,
);
