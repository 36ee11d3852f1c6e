import { describe, expect, test } from 'vitest';
import { eventRow } from './event-row-of.ts';
import { MONGO, MONGODB_URL, mongoStage } from './mongo-stage.ts';

const LOG = { tenant: 'acme', conversation: 'talk' };

describe.skipIf(!MONGODB_URL)(MONGO, () => {
  for (const [writers, each] of [
    [2, 40],
    [8, 20],
    [32, 8],
  ] as const) {
    test(`${writers} processes append to one conversation: a dense log, few retries`, async () => {
      const stage = mongoStage();
      const drivers = await Promise.all(Array.from({ length: writers }, () => stage.open()));
      const began = performance.now();
      await Promise.all(
        drivers.map(async (driver, writer) => {
          let last = 0;
          for (let index = 0; index < each; index += 1) {
            const [outcome] = await driver.append([eventRow(`w${writer}-${index}`, LOG)]);
            expect(outcome?.kind).toBe('appended');
            expect(outcome?.seq).toBeGreaterThan(last);
            last = outcome!.seq;
          }
        }),
      );
      const seconds = (performance.now() - began) / 1000;
      const total = writers * each;
      const rows = await drivers[0]!.readEvents({ ...LOG, after: 0, limit: 10_000 });
      expect(rows.map(({ seq }) => seq)).toEqual(Array.from({ length: total }, (_, index) => index + 1));
      expect(new Set(rows.map(({ id }) => id)).size).toBe(total);

      const clashes = drivers.reduce((sum, { stats }) => sum + stats.clashes, 0);
      const most = Math.max(...drivers.map(({ stats }) => stats.mostClashes));
      console.log(
        `${writers} appenders: ${(clashes / total).toFixed(2)} retries per append, at most ${most}, ${(total / seconds).toFixed(0)} appends/s`,
      );
      // No livelock: in every clash one process wins, so each loses less often than there are others.
      expect(clashes / total).toBeLessThan(writers);
    });
  }

  test('a batch among other writers is stored completely, in order and without holes', async () => {
    const stage = mongoStage();
    const drivers = await Promise.all(Array.from({ length: 4 }, () => stage.open()));
    await Promise.all(
      drivers.flatMap((driver, writer) =>
        Array.from({ length: 5 }, (_, call) =>
          driver.append(
            Array.from({ length: 5 }, (__, index) => eventRow(`w${writer}-${call}-${index}`, LOG)),
          ),
        ),
      ),
    );
    const rows = await drivers[0]!.readEvents({ ...LOG, after: 0, limit: 1000 });
    expect(rows.map(({ seq }) => seq)).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
    for (let writer = 0; writer < 4; writer += 1) {
      const own = rows.flatMap(({ id }) => (id.startsWith(`w${writer}-`) ? [id] : []));
      expect(own).toEqual(own.toSorted());
    }
  });

  test('fifty concurrent creations from several processes create a record once', async () => {
    const stage = mongoStage();
    const drivers = await Promise.all(Array.from({ length: 5 }, () => stage.open()));
    for (let round = 0; round < 50; round += 1) {
      const key = { ...LOG, agent: `a${round}` };
      const outcomes = await Promise.all(
        drivers.map((driver, index) =>
          index < 3
            ? driver.acquire(key, { owner: `o${index}`, now: 1000, until: 1100 })
            : driver.park(key, 'paused').then(() => null),
        ),
      );
      const won = outcomes.filter((each) => each?.kind === 'acquired');
      expect(won).toHaveLength(1);
      expect(await drivers[0]!.readActor(key)).toMatchObject({ fence: 1, until: 1100, parked: 'paused' });
      expect(
        await stage.db.collection('actors').countDocuments({ _id: `acme/talk/a${round}` as never }),
      ).toBe(1);
    }
  });

  test('conversations written by another process are listed with their true heads', async () => {
    const stage = mongoStage();
    const [one, two] = [await stage.open(), await stage.open()];
    await one!.append([eventRow('a', { ...LOG, conversation: 'old', at: 10 })]);
    await one!.append([eventRow('a', { ...LOG, conversation: 'new', at: 20 })]);
    await one!.append([eventRow('b', { ...LOG, conversation: 'old', at: 30 })]);
    expect((await two!.conversations({ tenant: 'acme', limit: 10 })).rows).toEqual([
      { id: 'old', head: 2, at: 30 },
      { id: 'new', head: 1, at: 20 },
    ]);
  });

  test('a conversation missing in the list is listed again after its first event is repeated', async () => {
    const stage = mongoStage();
    const driver = await stage.open();
    await driver.append([eventRow('a', LOG)]);
    await stage.db.collection('conversations').deleteMany({});
    expect((await driver.conversations({ tenant: 'acme', limit: 10 })).rows).toEqual([]);
    await driver.append([eventRow('a', LOG)]);
    expect((await driver.conversations({ tenant: 'acme', limit: 10 })).rows).toEqual([
      { id: 'talk', head: 1, at: 1000 },
    ]);
  });
});
