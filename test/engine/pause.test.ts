import { expect, test } from 'vitest';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import type { AgentId, ConversationId } from '../../src/events/index.ts';
import { mortal, storeAway, tapDriver, writtenBy } from '../support/engine-driver.ts';
import { gated, inOrder, modelOf, says, shown, times } from '../support/engine-models.ts';
import { ANA, openStage, type Stage, turns, until } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';

function order(stage: Stage, command: 'pause' | 'resume'): Promise<unknown> {
  const target = { conversation: 'c' as ConversationId, agent: 'bo' as AgentId };
  return stage.troupe.command({ command, ...target }, ANA);
}

async function endings(stage: Stage): Promise<string[]> {
  const events = await stage.events('c');
  return events
    .filter(({ kind }) => kind.startsWith('turn.') && kind !== 'turn.started')
    .map(({ kind }) => kind);
}

test('a paused agent starts no turn; its pending messages are answered once when it is resumed', async () => {
  const model = inOrder(says('here'));
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'one', ['bo']);
  await stage.quiet();
  await order(stage, 'pause');
  await stage.say('c', 'two', ['bo']);
  await stage.say('c', 'three', ['bo']);
  await stage.quiet();
  expect(model.requests).toHaveLength(1);
  expect((await stage.troupe.actors('c'))[0]).toMatchObject({ status: 'paused' });
  expect(await stage.check('c')).toEqual([]);
  await order(stage, 'resume');
  await stage.quiet();
  expect(model.requests).toHaveLength(2);
  for (const word of ['two', 'three']) expect(times(shown(model.requests[1]), word)).toBe(1);
  expect(await stage.check('c')).toEqual([]);
  expect((await stage.troupe.actors('c'))[0]).toMatchObject({ status: 'idle' });
});

test('a turn that is paused midway finishes and publishes, and no other begins', async () => {
  const model = gated(says('a', 'b'), 1);
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'one', ['bo']);
  await model.reached();
  await stage.say('c', 'two', ['bo']);
  await order(stage, 'pause');
  model.open();
  await stage.quiet();
  expect(await endings(stage)).toEqual(['turn.done']);
  expect(await stage.actor('c', 'bo')).toMatchObject({
    parked: 'paused',
    turn: null,
    unpublished: false,
    owner: '',
  });
  await order(stage, 'resume');
  await stage.quiet();
  expect(await endings(stage)).toEqual(['turn.done', 'turn.done']);
  expect(await stage.check('c')).toEqual([]);
});

test('resuming a working agent changes nothing', async () => {
  const model = gated(says('a', 'b'), 1);
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'one', ['bo']);
  await model.reached();
  await order(stage, 'resume');
  model.open();
  await turns(200);
  expect(model.requests).toHaveLength(1);
  await stage.quiet();
  expect(await endings(stage)).toEqual(['turn.done']);
  expect(await stage.check('c')).toEqual([]);
});

test('a turn whose process died is not resumed while its agent is paused, and continues afterwards', async () => {
  const driver = await openDriver();
  const model = gated(says('a', 'b'), 1);
  const first = mortal(driver);
  const killed = await openStage({ driver: first.driver, agents: [{ id: 'bo', model }] });
  await killed.say('c', 'one', ['bo']);
  await model.reached();
  await order(killed, 'pause');
  first.kill();

  const next = inOrder(says('there'));
  const stage = await openStage({ driver, agents: [{ id: 'bo', model: next }] });
  await stage.quiet();
  expect(next.requests).toHaveLength(0);
  await order(stage, 'resume');
  await stage.quiet();
  expect(await endings(stage)).toEqual(['turn.done']);
  expect(await stage.check('c')).toEqual([]);
});

test('a reply committed before the pause is published during it', async () => {
  const driver = await openDriver();
  let broken = false;
  const failing = tapDriver(driver, async (op, phase, args) => {
    if (broken || phase === 'before' || !writtenBy(op, args).some((id) => id.endsWith(':reply'))) return;
    broken = true;
    await order(stage, 'pause');
    throw storeAway('right after the commit');
  });
  const stage = await openStage({ driver: failing, agents: [{ id: 'bo', model: inOrder(says('said')) }] });
  await stage.say('c', 'one', ['bo']);
  await stage.quiet();
  expect(await endings(stage)).toEqual(['turn.done']);
  expect(await stage.actor('c', 'bo')).toMatchObject({ parked: 'paused', unpublished: false });
});

test('an agent paused while another process ended its turn continues with that answer in its prompt', async () => {
  const driver = await openDriver();
  const clock = createFakeClock();
  const limits = { soleOwner: false, leaseMs: 2_000, sweepMs: 3_000 };
  let frozen: Promise<void> | undefined;
  const slow = gated(says('never heard'), 1);
  const own = inOrder(says('the second answer'));
  const model = modelOf((request, signal) =>
    (slow.requests.length > 0 ? own : slow).stream(request, { signal }),
  );
  const first = await openStage({
    driver: tapDriver(driver, () => frozen),
    clock,
    agents: [{ id: 'bo', model }],
    limits,
  });
  await first.say('c', 'one', ['bo']);
  await slow.reached();
  await first.say('c', 'two', ['bo']);
  const thaw = Promise.withResolvers<void>();
  frozen = thaw.promise;

  // The first process's copy of the log is current.
  let isDiverted = false;
  const other = gated(says('the first answer'), 1);
  const second = await openStage({
    driver,
    clock,
    agents: [{ id: 'bo', model: other }],
    limits,
    router: (router) => ({
      ...router,
      wake: (address, options) => (isDiverted ? first.deps.router : router).wake(address, options),
    }),
  });
  // In small steps: a renewal takes several rounds of the event loop, and one long leap would let it lose its lease.
  await until('the second process asks its model', async () => {
    await clock.advance(20);
    return other.requests.length > 0;
  });
  await other.reached();
  await order(second, 'pause');
  other.open();
  await second.quiet();
  expect(await second.actor('c', 'bo')).toMatchObject({ parked: 'paused', turn: null, unpublished: false });

  frozen = undefined;
  thaw.resolve();
  slow.open();
  await first.quiet();
  isDiverted = true;
  await order(second, 'resume');
  await first.quiet();
  expect(own.requests).toHaveLength(1);
  expect(shown(own.requests[0])).toMatch(/one[^]*the first answer[^]*two/);
  expect(await first.check('c')).toEqual([]);
  const [, turn] = (await first.events('c')).filter(({ kind }) => kind === 'turn.done');
  expect(await first.troupe.promptOf(turn?.turn ?? '')).toMatchObject({ verified: true });
});
