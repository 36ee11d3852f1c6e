import { expect, test } from 'vitest';
import type { ActorRow, StoreDriver } from '../../src/store/driver.ts';
import type { AgentId, ConversationId } from '../../src/events/index.ts';
import { inOrder, says } from '../support/engine-models.ts';
import { ANA, openStage, type Stage } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';

const KEY = { tenant: 'default', conversation: 'c', agent: 'bo' };

async function row(driver: StoreDriver): Promise<ActorRow> {
  return (await driver.readActor(KEY)) as ActorRow;
}

async function damage(driver: StoreDriver, data: string): Promise<void> {
  await driver.compareAndSet(KEY, { fence: (await row(driver)).fence }, { data });
}

function withState(data: string, change: Record<string, unknown>): string {
  return JSON.stringify({ ...(JSON.parse(data) as object), ...change });
}

async function problems(stage: Stage): Promise<string[]> {
  return (await stage.events('c')).flatMap((event) =>
    event.kind === 'error' && event.author.kind === 'system' ? [event.body.code] : [],
  );
}

const DAMAGES: [string, (data: string) => string][] = [
  ['a record that is not JSON', () => '{"turnNo":'],
  ['a record with a field of the wrong kind', (data) => withState(data, { turnNo: 'many' })],
  [
    'a snapshot in a state nobody knows',
    (data) => withState(data, { snapshot: '{"value":"dancing","context":{}}' }),
  ],
];

test.each(DAMAGES)(
  '%s makes its agent fail visibly; the others continue, and repair and resume bring it back',
  async (_, break_) => {
    const driver = await openDriver();
    const bo = inOrder(says('bo here'));
    const cy = inOrder(says('cy here'));
    const stage = await openStage({
      driver,
      agents: [
        { id: 'bo', model: bo },
        { id: 'cy', model: cy },
      ],
    });
    await stage.say('c', 'hello', ['bo', 'cy']);
    await stage.quiet();
    const { data } = await row(driver);
    await damage(driver, break_(data));
    // Continues in a process without anything in memory.
    await stage.engine.stop();
    const later = await openStage({
      driver,
      agents: [
        { id: 'bo', model: bo },
        { id: 'cy', model: cy },
      ],
    });
    await later.say('c', 'still there?', ['bo', 'cy']);
    await later.quiet();

    expect(await problems(later)).toEqual(['actor_corrupt']);
    const statuses = (await later.troupe.actors('c')).map(({ agent, status }) => [agent, status]);
    expect(statuses).toEqual([
      ['bo', 'failed'],
      ['cy', 'idle'],
    ]);
    expect(bo.requests).toHaveLength(1);
    expect(cy.requests).toHaveLength(2);

    const resume = {
      command: 'resume',
      conversation: 'c' as ConversationId,
      agent: 'bo' as AgentId,
    } as const;
    await later.troupe.command(resume, ANA);
    await later.quiet();
    expect(await problems(later)).toEqual(['actor_corrupt', 'actor_corrupt']);
    expect((await later.troupe.actors('c'))[0]).toMatchObject({ status: 'failed' });

    await damage(driver, data);
    await later.troupe.command(resume, ANA);
    await later.quiet();
    expect(bo.requests).toHaveLength(2);
    expect(await later.check('c')).toEqual([]);
  },
);

test('a store that is unavailable while an agent fails loses neither the notice nor the message', async () => {
  const driver = await openDriver();
  const bo = inOrder(says('bo here'));
  const stage = await openStage({ driver, agents: [{ id: 'bo', model: bo }] });
  await stage.say('c', 'hello', ['bo']);
  await stage.quiet();
  await stage.engine.stop();
  const { data } = await row(driver);
  await damage(driver, withState(data, { snapshot: 'null' }));
  let failures = 0;
  const flaky: StoreDriver = {
    ...driver,
    append: (rows) =>
      rows[0]?.kind === 'error' && failures++ === 0 ? Promise.reject(new Error('away')) : driver.append(rows),
  };
  const later = await openStage({ driver: flaky, agents: [{ id: 'bo', model: bo }] });
  await later.say('c', 'still there?', ['bo']);
  await later.quiet();
  await later.clock.advance(later.deps.limits.sweepMs * 4);
  await later.quiet();
  expect(failures).toBe(2);
  expect(await problems(later)).toEqual(['actor_corrupt']);
  expect((await later.troupe.actors('c'))[0]).toMatchObject({ status: 'failed' });
});

test('an agent whose record is ahead of the log fails with a warning instead of staying silent', async () => {
  const driver = await openDriver();
  const stage = await openStage({ driver, agents: [{ id: 'bo', model: inOrder(says('one'), says('two')) }] });
  await stage.say('c', 'first', ['bo']);
  await stage.quiet();
  await driver.compareAndSet(KEY, { fence: (await row(driver)).fence }, { processed: 9_999 });
  await stage.say('c', 'second', ['bo']);
  await stage.quiet();
  expect(await problems(stage)).toEqual(['actor_corrupt']);
  expect((await row(driver)).parked).toBe('failed');
  expect(stage.warnings.map(({ where }) => where)).toContain('@bo in c has failed');
});
