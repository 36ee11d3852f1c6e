import pg from 'pg';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { ActorStep, StepEvent, StoreDriver } from '../../../src/store/driver.ts';
import { eventRow, verified } from '../../../test/store/event-row-of.ts';
import { POSTGRES, POSTGRES_URL, postgresStage } from './postgres-stage.ts';

const LOG = { tenant: 'acme', conversation: 'talk' };
const KEY = { ...LOG, agent: 'worker' };
const LEASE = { owner: 'one', now: 1, until: 1_000 };

function eventOf(id: string, change: Parameters<typeof eventRow>[1] = {}): StepEvent {
  return { row: eventRow(id, { ...LOG, ...change }), ifTaken: 'spare' };
}

async function begun(driver: StoreDriver): Promise<{ fence: number }> {
  const acquired = await driver.acquire(KEY, LEASE);
  if (acquired.kind === 'busy') throw new Error('somebody has the lease');
  return { fence: acquired.row.fence };
}

const RESTS = { change: { data: '{}', processed: 1 }, rests: true } as const;

/** Counts what all clients send. */
function countQueries(): () => number {
  const spy = vi.spyOn(pg.Client.prototype, 'query');
  onTestFinished(() => spy.mockRestore());
  return () => spy.mock.calls.length;
}

describe.skipIf(!POSTGRES_URL)(POSTGRES, () => {
  test('a step on the log of its actor is one statement, whose end nobody has moved', async () => {
    const driver = await postgresStage().open();
    await driver.append([eventRow('m1', { to: ['worker'] })]);
    const expect_ = await begun(driver);
    const count = countQueries();
    await driver.step(KEY, { expect: expect_, change: { data: '{}' }, events: [eventOf('started')] });
    const entry = { tenant: 'acme', namespace: 'prompt', key: 't:0' } as const;
    const step: ActorStep = { expect: expect_, ...RESTS, events: [eventOf('said'), eventOf('ended')] };
    const outcome = await driver.step(KEY, { ...step, entries: [{ key: entry, data: 'receipt', at: 1 }] });
    expect(count()).toBe(2);
    expect(outcome).toMatchObject({ isAddressed: false, row: { owner: '', until: 0, processed: 4 } });
    expect(await driver.readEntry(entry)).toBe('receipt');
    expect(await verified(driver)).toMatchObject({ head: 4, problemCount: 0 });
  });

  test('a step finds what another process has appended: its events come after, and it says that something came', async () => {
    const stage = postgresStage();
    const [one, other] = [await stage.open(), await stage.open()];
    await one.append([eventRow('m1', { to: ['worker'] })]);
    const expect_ = await begun(one);
    await other.append([eventRow('m2', { to: ['worker'] })]);
    const told: unknown[] = [];
    const outcome = await one.step(KEY, {
      expect: expect_,
      ...RESTS,
      events: [eventOf('said')],
      told: async (appended) => void told.push(...appended),
    });
    expect(told).toEqual([{ kind: 'appended', seq: 3, id: 'said' }]);
    expect(outcome).toMatchObject({ isAddressed: true, row: { owner: 'one', until: 1_000, processed: 1 } });
    expect(await verified(one)).toMatchObject({ head: 3, problemCount: 0 });
  });

  test('a step that is refused leaves nothing: no event, no entry, no conversation', async () => {
    const driver = await postgresStage().open();
    await driver.append([eventRow('m1', { to: ['worker'] })]);
    const { fence } = await begun(driver);
    const key = { tenant: 'acme', namespace: 'prompt', key: 't:0' } as const;
    const refused = {
      expect: { fence: fence - 1 },
      change: { data: '{}' },
      entries: [{ key, data: 'x', at: 1 }],
    };
    expect(await driver.step(KEY, { ...refused, events: [eventOf('said')] })).toBeNull();
    const elsewhere = [eventOf('said'), eventOf('asked', { conversation: 'thread' })];
    expect(await driver.step(KEY, { ...refused, events: elsewhere })).toBeNull();
    expect(await driver.head(LOG)).toBe(1);
    expect(await driver.readEntry(key)).toBeNull();
    const { rows } = await driver.conversations({ tenant: 'acme', limit: 9 });
    expect(rows.map(({ id }) => id)).toEqual(['talk']);
  });

  test('an event that is there is not appended again, and one whose id is taken takes a spare one', async () => {
    const driver = await postgresStage().open();
    await driver.append([eventRow('m1'), eventRow('same'), eventRow('taken', { content: 'by another' })]);
    const told: unknown[] = [];
    await driver.step(KEY, {
      expect: await begun(driver),
      change: { data: '{}' },
      events: [eventOf('same'), eventOf('taken'), { ...eventOf('taken'), ifTaken: 'drop' }, eventOf('new')],
      told: async (appended) => void told.push(...appended),
    });
    expect(told).toEqual([
      { kind: 'there', seq: 2, id: 'same' },
      { kind: 'appended', seq: 4, id: expect.stringContaining('taken') },
      { kind: 'taken' },
      { kind: 'appended', seq: 5, id: 'new' },
    ]);
    expect(await verified(driver)).toMatchObject({ head: 5, problemCount: 0 });
  });

  test('steps of many actors into the same logs, beside appends: nobody waits in a circle, every log is dense and chained', async () => {
    const stage = postgresStage();
    const drivers = await Promise.all([stage.open(), stage.open(), stage.open()]);
    const logs = ['a', 'b', 'c'];
    await Promise.all(
      Array.from({ length: 9 }, async (_, n) => {
        const driver = drivers[n % 3]!;
        const key = { tenant: 'acme', conversation: logs[n % 3]!, agent: `agent-${n}` };
        const acquired = await driver.acquire(key, LEASE);
        if (acquired.kind === 'busy') throw new Error('somebody has the lease');
        for (let round = 0; round < 10; round += 1) {
          const names = [key.conversation, logs[(n + round) % 3]!, logs[(n + 2 * round) % 3]!];
          const events = names.map((conversation, at) => eventOf(`${n}:${round}:${at}`, { conversation }));
          const expected = { fence: acquired.row.fence };
          const made = await driver.step(key, { expect: expected, change: { data: `${round}` }, events });
          expect(made?.row.data).toBe(`${round}`);
          await driver.append([eventRow(`x:${n}:${round}`, { conversation: logs[round % 3]! })]);
        }
      }),
    );
    let events = 0;
    for (const conversation of logs) {
      const found = await verified(drivers[0]!, { tenant: 'acme', conversation });
      expect(found).toMatchObject({ problemCount: 0 });
      events += found.head;
    }
    expect(events).toBe(9 * 10 * 4);
  });

  test('the first events of a log come from steps and appends at once: nobody waits in a circle', async () => {
    const stage = postgresStage();
    const drivers = await Promise.all([stage.open(), stage.open(), stage.open()]);
    const key = (n: number) => ({ tenant: 'acme', conversation: `home-${n}`, agent: 'worker' });
    const fences = await Promise.all(
      [0, 1].map(async (n) => {
        await drivers[n]!.append([eventRow(`begin-${n}`, { conversation: `home-${n}` })]);
        const acquired = await drivers[n]!.acquire(key(n), LEASE);
        if (acquired.kind === 'busy') throw new Error('somebody has the lease');
        return { fence: acquired.row.fence };
      }),
    );
    for (let round = 0; round < 30; round += 1) {
      const [one, two] = [`log-${round}-a`, `log-${round}-b`];
      const steps = fences.map((fence, n) => {
        const events = [n === 0 ? [one, two] : [two, one]].flat();
        return drivers[n]!.step(key(n), {
          expect: fence,
          change: { data: `${round}` },
          events: events.map((conversation) => eventOf(`${conversation}:${n}`, { conversation })),
        });
      });
      const appends = [one, two].flatMap((conversation) =>
        drivers.map((driver, n) => driver.append([eventRow(`x:${conversation}:${n}`, { conversation })])),
      );
      await Promise.all([...steps, ...appends]);
      for (const conversation of [one, two])
        expect(await verified(drivers[2]!, { tenant: 'acme', conversation })).toMatchObject({
          head: 5,
          problemCount: 0,
        });
    }
  });
});
