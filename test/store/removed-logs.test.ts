import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { StoreDriver } from '../../src/store/driver.ts';
import { createDocumentDriver } from '../../src/store/documents/document-driver.ts';
import type { DocumentGate } from '../../sim/memory-documents.ts';
import { createMemoryDocuments, newMemoryData } from '../../sim/memory-documents.ts';
import { eventRow, verified } from './event-row-of.ts';
import { MONGO, MONGODB_URL, mongoStage } from './mongo-stage.ts';

const LOG = { tenant: 'acme', conversation: 'talk' };
const KEY = { ...LOG, agent: 'worker' };
const ALL = { ...LOG, after: 0, limit: 100 };

async function seqsOf(driver: StoreDriver): Promise<[number, string][]> {
  return (await driver.readEvents(ALL)).map(({ seq, id }) => [seq, id]);
}

/** One process removes a log whose end another process knows. */
async function rememberedTooHigh(one: StoreDriver, two: StoreDriver): Promise<void> {
  const rows = ['a', 'b', 'c', 'd'].map((id) => eventRow(id, LOG));
  await two.append(rows);
  expect(await one.deleteConversation(LOG)).toEqual({ events: 4, actors: 0 });
  expect(await two.append([eventRow('e', LOG), eventRow('f', LOG)])).toEqual([
    { kind: 'appended', seq: 1 },
    { kind: 'appended', seq: 2 },
  ]);
  expect(await seqsOf(one)).toEqual([
    [1, 'e'],
    [2, 'f'],
  ]);

  // The log has begun again meanwhile, and is shorter than the known end.
  await two.append(rows);
  await one.deleteConversation(LOG);
  await one.append([eventRow('x', LOG)]);
  expect(await two.append([eventRow('y', LOG)])).toEqual([{ kind: 'appended', seq: 2 }]);
  expect(await two.append([eventRow('z', LOG)])).toEqual([{ kind: 'appended', seq: 3 }]);
  expect(await two.append([eventRow('x', LOG)])).toMatchObject([{ kind: 'duplicate', seq: 1 }]);

  // The log was read meanwhile, but not written to.
  await one.deleteConversation(LOG);
  expect(await two.head(LOG)).toBe(0);
  expect(await two.append([eventRow('y', LOG)])).toEqual([{ kind: 'appended', seq: 1 }]);
  expect(await seqsOf(one)).toEqual([[1, 'y']]);
}

const QUIET = { random: () => 0.5, sleep: () => Promise.resolve() };

/** Drivers over one set of documents. With a time, `sleep` advances it, and so does every operation. */
function inMemory({ gate, time }: { gate?: DocumentGate; time?: { now: number } } = {}) {
  const data = newMemoryData();
  return {
    data,
    open: () =>
      createDocumentDriver(createMemoryDocuments(gate ? { data, gate } : { data }), {
        random: () => 0.5,
        sleep: async (ms) => void (time && (time.now += ms)),
        ...(time ? { monotonic: () => time.now } : {}),
      }),
  };
}

test('in memory: a process that knows the end of a removed log begins at 1', async () => {
  for (const time of [undefined, { now: 0 }]) {
    const { open } = inMemory(time ? { time } : {});
    await rememberedTooHigh(open(), open());
  }
});

test('in memory: an outdated known head costs one extra insert', async () => {
  const { open } = inMemory();
  const [one, two] = [open(), open()];
  await two.append([eventRow('a', LOG)]);
  await one.deleteConversation(LOG);
  await two.append([eventRow('b', LOG)]);
  await two.append([eventRow('c', LOG)]);
  expect(two.stats).toMatchObject({ inserts: 4, clashes: 1 });
});

test('with a clock, a recent end is trusted, and an old one is read again', async () => {
  const time = { now: 0 };
  const ops: string[] = [];
  const gate: DocumentGate = async (op, work) => {
    ops.push(op);
    return work();
  };
  const driver = inMemory({ gate, time }).open();
  await driver.append([eventRow('a', LOG)]);
  time.now += 499;
  await driver.append([eventRow('b', LOG)]);
  time.now += 500;
  await driver.append([eventRow('c', LOG)]);
  expect(ops.join(' ')).toBe('events.last events.insert events.insert events.last events.insert');
});

test('with a clock, a slow insert checks the event before it, and begins again if that is gone', async () => {
  const time = { now: 0 };
  let isSlow = false;
  const { open, data } = inMemory({
    time,
    async gate(op, work) {
      if (op === 'events.insert' && isSlow) {
        isSlow = false;
        const removing = open().deleteConversation(LOG);
        await removing;
      }
      return work();
    },
  });
  const driver = open();
  await driver.append([eventRow('a', LOG), eventRow('b', LOG)]);
  isSlow = true;
  expect(await driver.append([eventRow('c', LOG)])).toEqual([{ kind: 'appended', seq: 1 }]);
  expect([...data.logs.get('acme/talk')!.bySeq.keys()]).toEqual([1]);
});

test('a slow insert after the end of a new log, as long as the removed one, begins the chain again', async () => {
  const time = { now: 0 };
  let isSlow = false;
  const { open } = inMemory({
    time,
    async gate(op, work) {
      if (op === 'events.insert' && isSlow) {
        isSlow = false;
        const other = open();
        await other.deleteConversation(LOG);
        await other.append([eventRow('x', LOG), eventRow('y', LOG)]);
      }
      return work();
    },
  });
  const driver = open();
  await driver.append([eventRow('a', LOG), eventRow('b', LOG)]);
  isSlow = true;
  expect(await driver.append([eventRow('c', LOG), eventRow('d', LOG)])).toMatchObject([
    { seq: 3 },
    { seq: 4 },
  ]);
  await driver.append([eventRow('e', LOG)]);
  await open().append([eventRow('f', LOG)]);
  expect(await verified(driver)).toMatchObject({ events: 6, unchained: 1, begins: [1, 4], problems: [] });
});

test('an insert of several events, one of which is removed meanwhile, leaves no hole and loses none', async () => {
  let inserts = 0;
  const { open, data } = inMemory({
    async gate(op, work) {
      if (op === 'events.insert') inserts += 1;
      if (inserts === 3) {
        inserts += 1;
        await createMemoryDocuments({ data }).events.removeNewest(LOG, { after: 1, limit: 1 });
      }
      return work();
    },
  });
  const driver = open();
  await driver.append([eventRow('a', LOG)]);
  expect(await driver.append([eventRow('b', LOG), eventRow('c', LOG)])).toEqual([
    { kind: 'appended', seq: 2 },
    { kind: 'appended', seq: 3 },
  ]);
  expect(await seqsOf(driver)).toEqual([
    [1, 'a'],
    [2, 'b'],
    [3, 'c'],
  ]);
});

test.each(['without a clock', 'with a clock'])(
  'removals and appends of several processes, in any order of their steps, leave dense and linked logs, %s',
  async (mode) => {
    const call = fc.record({
      process: fc.nat({ max: 2 }),
      kind: fc.constantFrom('append', 'append', 'append', 'remove', 'head'),
      /** Whether later operations wait for all earlier ones. */
      waits: fc.boolean(),
    });
    const passes = fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        passes,
        fc.array(call, { minLength: 2, maxLength: 14 }),
        async (scheduler, ticks, calls) => {
          const time = { now: 0 };
          let steps = 0;
          const gate: DocumentGate = async (op, work) => {
            await scheduler.schedule(Promise.resolve(), op);
            time.now += ticks[(steps += 1) % ticks.length]!;
            return work();
          };
          const { open, data } = inMemory(mode === 'with a clock' ? { gate, time } : { gate });
          const drivers = [open(), open(), open()];
          await scheduler.waitFor(drivers[0]!.append([eventRow('p', LOG), eventRow('q', LOG)]));
          await scheduler.waitFor(drivers[1]!.append([eventRow('r', LOG)]));
          const begun: Promise<unknown>[] = [];
          for (const [index, { process, kind, waits }] of calls.entries()) {
            const driver = drivers[process]!;
            if (kind === 'append') begun.push(driver.append([eventRow(`e${index}`, LOG)]));
            else begun.push(kind === 'head' ? driver.head(LOG) : driver.deleteConversation(LOG));
            if (waits) await scheduler.waitFor(Promise.all(begun));
          }
          await scheduler.waitFor(Promise.all(begun));
          const seqs = [...(data.logs.get('acme/talk')?.bySeq.keys() ?? [])].sort((a, b) => a - b);
          expect(seqs).toEqual(seqs.map((_, index) => index + 1));
          const undisturbed = createDocumentDriver(createMemoryDocuments({ data }), QUIET);
          expect((await verified(undisturbed)).problems).toEqual([]);
        },
      ),
      { numRuns: 1000 },
    );
  },
);

test('an interrupted removal wakes no agent, is visible in the head, and is completed by a repetition', async () => {
  for (let cut = 0; ; cut += 1) {
    let left = Number.POSITIVE_INFINITY;
    const gate: DocumentGate = async (_, work) => {
      if (left === 0) throw new Error('cut off');
      left -= 1;
      return work();
    };
    const { open, data } = inMemory({ gate });
    const driver = open();
    await driver.append(['a', 'b', 'c'].map((id) => eventRow(id, { ...LOG, to: ['worker'] })));
    await driver.acquire(KEY, { owner: 'o', now: 1, until: 2 });
    await driver.compareAndSet(KEY, { fence: 1 }, { turn: 'talk:worker:1', wakeAt: 5 });
    await driver.acquire({ ...KEY, agent: 'boss' }, { owner: 'o', now: 1, until: 2 });
    await driver.putOnce({ tenant: 'acme', namespace: 'journal', key: 'talk:worker:1/1' }, 'x', 1);
    left = cut;
    const isWhole = await driver.deleteConversation(LOG).then(
      () => true,
      () => false,
    );
    left = Number.POSITIVE_INFINITY;
    const isPinned = data.actors.has('acme/talk/worker');
    // An agent without a record does not begin again, and a remaining turn has its journal.
    const due = await driver.due({ now: 9, clock: 9, since: 0, limit: 9 });
    expect(due.map(({ agent }) => agent)).toEqual(isPinned ? ['worker'] : []);
    if (isPinned) expect(data.entries.size).toBe(1);
    if (data.actors.size + data.entries.size > 0) expect(await open().head(LOG)).toBe(3);
    const seqs = [...(data.logs.get('acme/talk')?.bySeq.keys() ?? [])];
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
    await driver.deleteConversation(LOG);
    expect([data.logs.size, data.actors.size, data.entries.size]).toEqual([0, 0, 0]);
    if (isWhole) return expect(cut).toBeGreaterThan(10);
  }
});

describe.skipIf(!MONGODB_URL)(MONGO, () => {
  test('a process that knows the end of a removed log begins at 1', async () => {
    const stage = mongoStage();
    await rememberedTooHigh(await stage.open(), await stage.open());
  });

  test('removals among the appends of several processes leave dense logs', async () => {
    const stage = mongoStage();
    const drivers = await Promise.all([stage.open(), stage.open(), stage.open(), stage.open()]);
    for (let round = 0; round < 3; round += 1) {
      await Promise.all(
        drivers.map(async (driver, writer) => {
          if (writer === 3) await driver.deleteConversation(LOG);
          else
            for (let index = 0; index < 10; index += 1)
              await driver.append([eventRow(`r${round}-${writer}-${index}`, LOG)]);
        }),
      );
      const seqs = (await seqsOf(drivers[0]!)).map(([seq]) => seq);
      expect(seqs).toEqual(seqs.map((_, index) => index + 1));
    }
  });

  test('large texts are removed with their conversation', async () => {
    const stage = mongoStage();
    const driver = await stage.open();
    const text = 'x'.repeat(400_000);
    for (const conversation of ['talk', 'other']) {
      const key = { ...KEY, conversation };
      await driver.append([{ ...eventRow('a', key), data: text }, eventRow('b', key)]);
      await driver.acquire(key, { owner: 'o', now: 1, until: 2 });
      await driver.compareAndSet(key, { fence: 1 }, { data: text });
      await driver.putOnce({ tenant: 'acme', namespace: 'artifact', key: `${conversation}/a1` }, text, 1);
    }
    await driver.deleteConversation(LOG);
    await driver.close();
    const firsts = await stage.db
      .collection('blobs')
      .find({ of: { $exists: true } })
      .toArray();
    expect(firsts.map(({ of }) => String(of.id)).sort()).toEqual([
      'acme/artifact/other/a1',
      'acme/other/a',
      'acme/other/worker',
    ]);
    for (const name of ['events', 'actors', 'registers', 'conversations'])
      expect(await stage.db.collection(name).countDocuments({ _id: /talk/ as never })).toBe(0);
  });
});
