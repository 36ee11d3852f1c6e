import { expect, test } from 'vitest';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { forever, tapDriver } from '../support/engine-driver.ts';
import { gated, inOrder, modelOf, says } from '../support/engine-models.ts';
import { openStage, turns } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';

const LIMITS = { soleOwner: false, leaseMs: 2_000, sweepMs: 3_000 };

test('a process that was suspended for longer than its lease changes nothing when it wakes: the turn is the successor’s', async () => {
  const driver = await openDriver();
  const slow = gated(says('from the ', 'paused one'), 2);
  let paused: Promise<void> | null = null;
  const frozen = tapDriver(driver, () => paused ?? undefined);
  const first = await openStage({ driver: frozen, agents: [{ id: 'bo', model: slow }], limits: LIMITS });
  await first.say('c', 'go', ['bo']);
  await slow.reached();
  const wake = Promise.withResolvers<void>();
  paused = wake.promise;

  const clock = createFakeClock(first.clock.now() + 10 * LIMITS.leaseMs);
  const fresh = inOrder(says('from the successor'));
  const second = await openStage({ driver, clock, agents: [{ id: 'bo', model: fresh }], limits: LIMITS });
  await second.quiet();
  expect(fresh.requests).toHaveLength(1);
  const before = await second.events('c');
  expect(before.at(-1)?.kind).toBe('turn.done');

  paused = null;
  wake.resolve();
  slow.open();
  await turns(30);
  await first.clock.advance(20 * LIMITS.leaseMs);
  await turns(30);
  expect(await second.events('c')).toEqual(before);
  expect(before.filter(({ kind }) => kind === 'message').at(-1)).toMatchObject({
    body: { content: 'from the successor' },
  });
  expect(await second.check('c')).toEqual([]);
});

test('a process that finds an actor leased elsewhere waits for the lease and never runs beside it', async () => {
  const driver = await openDriver();
  let running = 0;
  let most = 0;
  const model = modelOf(async function* () {
    running++;
    most = Math.max(most, running);
    await clock.sleep(50);
    running--;
    yield* says('answer');
  });
  const clock = createFakeClock();
  const open = () => openStage({ driver, clock, agents: [{ id: 'bo', model }], limits: LIMITS });
  const stages = [await open(), await open(), await open()];
  for (let i = 0; i < 30; i++) {
    await stages[i % 3]?.say('c', `message ${i}`, ['bo']);
    await clock.advance((i * 7) % 40);
  }
  for (const stage of stages) await stage.quiet();
  expect(most).toBe(1);
  expect(await stages[0]?.check('c')).toEqual([]);
});

test('a long model call renews its lease, so that no other process takes the turn over', async () => {
  const driver = await openDriver();
  const clock = createFakeClock();
  const model = modelOf(async function* () {
    await clock.sleep(20 * LIMITS.leaseMs);
    yield* says('at last');
  });
  const open = () => openStage({ driver, clock, agents: [{ id: 'bo', model }], limits: LIMITS });
  const [first] = [await open(), await open()];
  await first.say('c', 'go', ['bo']);
  await first.quiet();
  expect(model.requests).toHaveLength(1);
  expect(await first.check('c')).toEqual([]);
});

test('what a killed process was at is taken up within 10 s, from its queue, without a setting', async () => {
  const driver = await openDriver();
  let isDead = false;
  const mortal = tapDriver(driver, () => (isDead ? forever() : undefined));
  const defaults = { soleOwner: false };
  const slow = gated(says('from the ', 'killed one'), 2);
  const first = await openStage({ driver: mortal, agents: [{ id: 'bo', model: slow }], limits: defaults });
  await first.say('c', 'go', ['bo']);
  await slow.reached();
  // It has renewed its lease a moment before it dies, so that nobody may have its work any sooner.
  await first.clock.advance(first.deps.limits.leaseMs + 100);
  isDead = true;
  const clock = createFakeClock(first.clock.now());
  const fresh = inOrder(says('from the successor'));
  const agents = [{ id: 'bo', model: fresh }];
  const second = await openStage({ driver, clock, agents, limits: defaults, random: () => 0 });
  // As a queue does whose lock has run out.
  await second.deps.router.wake(await second.actor('c', 'bo'));
  for (let seconds = 1; seconds <= 10; seconds += 1) {
    await clock.advance(1_000);
    await turns(50);
  }
  expect(fresh.requests).toHaveLength(1);
  expect((await second.events('c')).at(-1)?.kind).toBe('turn.done');
  expect(await second.check('c')).toEqual([]);
});
