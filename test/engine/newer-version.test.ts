import { expect, test } from 'vitest';
import { ACTOR_VERSION } from '../../src/events/index.ts';
import type { ActorRow, StoreDriver } from '../../src/store/driver.ts';
import { inOrder, says } from '../support/engine-models.ts';
import { openStage, turns } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';

const KEY = { tenant: 'default', conversation: 'c', agent: 'bo' };

async function row(driver: StoreDriver): Promise<ActorRow> {
  return (await driver.readActor(KEY)) as ActorRow;
}

test('a record of a newer version is neither changed nor failed, and a process that knows it answers', async () => {
  const driver = await openDriver();
  const model = inOrder(says('one'), says('two'));
  const stage = await openStage({ driver, agents: [{ id: 'bo', model }], limits: { soleOwner: false } });
  await stage.say('c', 'first', ['bo']);
  await stage.quiet();
  await stage.engine.stop();

  const older = await row(driver);
  const newer = JSON.stringify({
    ...(JSON.parse(older.data) as object),
    machineVersion: ACTOR_VERSION + 1,
    whatIsNew: { kept: true },
  });
  await driver.compareAndSet(KEY, { fence: older.fence }, { data: newer });

  const old = await openStage({
    driver,
    clock: stage.clock,
    agents: [{ id: 'bo', model }],
    limits: { soleOwner: false },
  });
  await old.say('c', 'second', ['bo']);
  await turns(50);
  await old.clock.advance(100);
  await turns(50);
  const left = await row(driver);
  expect(left.data).toBe(newer);
  expect([left.parked, left.owner, left.until]).toEqual([null, '', 0]);
  expect(model.requests).toHaveLength(1);
  expect(old.warnings.map(({ error }) => (error as { code?: string }).code)).toContain('actor_newer');
  expect((await old.events('c')).filter(({ kind }) => kind === 'error')).toEqual([]);
  // The wake is kept for a process that can read the record.
  expect((await old.deps.router.depth()).delayed).toBeGreaterThan(0);

  // A newer process leaves a record that both versions can read.
  await driver.compareAndSet(KEY, { fence: left.fence }, { data: older.data });
  await old.quiet();
  expect(model.requests).toHaveLength(2);
  expect(await old.check('c')).toEqual([]);
});
