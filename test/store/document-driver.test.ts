import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TroupeError } from '../../src/base/errors.ts';
import { type DocumentDriver, createDocumentDriver } from '../../src/store/documents/document-driver.ts';
import type { DocumentGate } from '../../sim/memory-documents.ts';
import { createMemoryDocuments, newMemoryData } from '../../sim/memory-documents.ts';
import { eventRow, verified } from './event-row-of.ts';

type Fault = 'none' | 'before' | 'after';

const LOG = { tenant: 'acme', conversation: 'talk' };
const KEY = { ...LOG, agent: 'worker' };

/** Several processes over one set of documents, whose operations may fail before or after they are done. */
function cluster(processes: number, scheduler: fc.Scheduler, nextFault: () => Fault): DocumentDriver[] {
  const data = newMemoryData();
  const gate: DocumentGate = async (op, work) => {
    await scheduler.schedule(Promise.resolve(), op);
    const fault = nextFault();
    if (fault === 'before') throw new TroupeError('store_unavailable', `${op}: not done`);
    const result = work();
    if (fault === 'after') throw new TroupeError('store_unavailable', `${op}: done, and not heard of`);
    return result;
  };
  return Array.from({ length: processes }, () =>
    createDocumentDriver(createMemoryDocuments({ data, gate }), {
      random: () => 0.5,
      sleep: () => scheduler.schedule(Promise.resolve(), 'sleep'),
    }),
  );
}

async function forSure<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof TroupeError) || error.code !== 'store_unavailable') throw error;
    }
  }
}

/** Faults of one schedule: one operation in ten, and none after a while, so that everything ends. */
const faults = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.constant<Fault>('none') },
    { weight: 1, arbitrary: fc.constant<Fault>('before') },
    { weight: 1, arbitrary: fc.constant<Fault>('after') },
  ),
  { maxLength: 200 },
);

const call = fc.record({
  process: fc.nat({ max: 2 }),
  ids: fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'), { minLength: 1, maxLength: 4 }),
});

test('appends of several processes under faults: every id once, seqs dense and chained, reported outcomes true', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      faults,
      fc.array(call, { minLength: 1, maxLength: 12 }),
      async (scheduler, plan, calls) => {
        const left = plan.values();
        const drivers = cluster(3, scheduler, () => left.next().value ?? 'none');
        const reported = new Map<string, number>();
        const all = Promise.all(
          calls.map(async ({ process, ids }) => {
            const rows = ids.map((id) => eventRow(id, LOG));
            const outcomes = await forSure(() => drivers[process]!.append(rows));
            for (const [index, { seq }] of outcomes.entries()) {
              expect(reported.get(ids[index]!) ?? seq).toBe(seq);
              reported.set(ids[index]!, seq);
            }
          }),
        );
        await scheduler.waitFor(all);
        const reading = () => drivers[0]!.readEvents({ ...LOG, after: 0, limit: 100 });
        const stored = await scheduler.waitFor(forSure(reading));
        expect(stored.map(({ seq }) => seq)).toEqual(stored.map((_, index) => index + 1));
        expect(new Map(stored.map(({ id, seq }) => [id, seq]))).toEqual(reported);
        expect(stored).toHaveLength(new Set(calls.flatMap(({ ids }) => ids)).size);
        const whole = await scheduler.waitFor(forSure(() => verified(drivers[0]!)));
        expect(whole).toMatchObject({ events: stored.length, unchained: 0, problems: [], begins: [1] });
      },
    ),
    { numRuns: 300 },
  );
});

test('leases under faults: one owner per fence, which never decreases', async () => {
  const attempt = fc.record({ process: fc.nat({ max: 2 }), now: fc.integer({ min: 1, max: 40 }) });
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      faults,
      fc.array(attempt, { minLength: 2, maxLength: 10 }),
      async (scheduler, plan, attempts) => {
        const left = plan.values();
        const drivers = cluster(3, scheduler, () => left.next().value ?? 'none');
        const owners = new Map<number, string>();
        const all = Promise.all(
          attempts.map(async ({ process, now }, index) => {
            const driver = drivers[process]!;
            const owner = `o${index}`;
            const outcome = await forSure(() => driver.acquire(KEY, { owner, now, until: now + 10 }));
            if (outcome.kind === 'busy') return;
            const { fence } = outcome.row;
            expect(outcome.row.owner).toBe(owner);
            expect(owners.get(fence)).toBeUndefined();
            owners.set(fence, owner);
            const written = await forSure(() =>
              driver.compareAndSet(KEY, { fence }, { data: `{"by":"${owner}"}` }),
            );
            expect(written?.owner ?? owner).toBe(owner);
          }),
        );
        await scheduler.waitFor(all);
        const row = await scheduler.waitFor(forSure(() => drivers[0]!.readActor(KEY)));
        expect(row!.fence).toBeGreaterThanOrEqual(Math.max(0, ...owners.keys()));
      },
    ),
    { numRuns: 300 },
  );
});

test('steps under faults: what one accepted is in its logs once and in order, and somebody was told of it', async () => {
  const attempt = fc.record({ process: fc.nat({ max: 2 }), now: fc.integer({ min: 1, max: 60 }) });
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      faults,
      fc.array(attempt, { minLength: 1, maxLength: 8 }),
      async (scheduler, plan, attempts) => {
        const left = plan.values();
        const drivers = cluster(3, scheduler, () => left.next().value ?? 'none');
        const told = new Set<string>();
        const accepted: number[] = [];
        const take = (process: number, now: number) =>
          drivers[process]!.acquire(KEY, { owner: `o${now}`, now, until: now + 10 }, async (rows) => {
            for (const { id } of rows) told.add(id);
          });
        const all = Promise.all(
          attempts.map(async ({ process, now }, index) => {
            try {
              const outcome = await take(process, now);
              if (outcome.kind === 'busy') return;
              const { fence } = outcome.row;
              const events = ['a', 'p', 'b', 'q'].map((name) => ({
                row: eventRow(`${index}${name}`, name < 'p' ? LOG : { ...LOG, conversation: 'elsewhere' }),
                ifTaken: 'spare' as const,
              }));
              const change = { data: `{"by":${index}}`, processed: fence };
              const stepped = await drivers[process]!.step(KEY, {
                expect: { fence },
                change,
                events,
                rests: true,
                told: async (appended) => {
                  for (const each of appended) if (each.kind !== 'taken') told.add(each.id);
                },
              });
              if (stepped) accepted.push(index);
            } catch (error) {
              if (!(error instanceof TroupeError) || error.code !== 'store_unavailable') throw error;
            }
          }),
        );
        await scheduler.waitFor(all);
        let now = 1_000;
        const settled = await scheduler.waitFor(forSure(() => take(0, (now += 100))));
        expect(settled).toMatchObject({ kind: 'acquired', row: { outbox: false } });
        for (const [log, names] of [
          [LOG, ['a', 'b']],
          [{ ...LOG, conversation: 'elsewhere' }, ['p', 'q']],
        ] as const) {
          const rows = await scheduler.waitFor(
            forSure(() => drivers[1]!.readEvents({ ...log, after: 0, limit: 100 })),
          );
          const ids = rows.map(({ id }) => id);
          expect(ids).toEqual([...new Set(ids)]);
          for (const index of accepted) expect(ids).toContain(`${index}${names[0]}`);
          for (const [at, id] of ids.entries())
            if (id.endsWith(names[0])) expect(ids[at + 1]).toBe(id.replace(names[0], names[1]));
          for (const id of ids) expect(told).toContain(id);
        }
      },
    ),
    { numRuns: 300 },
  );
});

test('entries under faults: one winner, whose data all receive', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      faults,
      fc.array(fc.nat({ max: 2 }), { minLength: 2, maxLength: 8 }),
      async (scheduler, plan, writers) => {
        const left = plan.values();
        const drivers = cluster(3, scheduler, () => left.next().value ?? 'none');
        const key = { tenant: 'acme', namespace: 'journal', key: 'k' } as const;
        const all = Promise.all(
          writers.map((process, index) => forSure(() => drivers[process]!.putOnce(key, `d${index}`, 1))),
        );
        const outcomes = await scheduler.waitFor(all);
        expect(new Set(outcomes.map(({ data }) => data)).size).toBe(1);
        expect(outcomes.filter(({ inserted }) => inserted).length).toBeLessThanOrEqual(1);
      },
    ),
    { numRuns: 200 },
  );
});

test('work for an agent that no process serves delays no other', async () => {
  const driver = createDocumentDriver(createMemoryDocuments(), {
    random: Math.random,
    sleep: async () => {},
  });
  for (let index = 0; index < 50; index += 1) {
    await driver.append([eventRow('e', { conversation: `c${index}`, at: index, to: ['nobody'] })]);
  }
  await driver.append([eventRow('e', { conversation: 'late', at: 1000, to: ['worker'] })]);
  const due = await driver.due({ now: 5000, clock: 0, since: 0, limit: 2 });
  expect(due.map(({ agent }) => agent)).toEqual(['nobody', 'worker']);
});

test('a lost connection clears the known ends of logs', async () => {
  const documents = createMemoryDocuments();
  let lose = () => {};
  const driver = createDocumentDriver(
    { ...documents, onLost: (listener) => void (lose = listener) },
    { random: Math.random, sleep: async () => {} },
  );
  await driver.append([eventRow('a', LOG)]);
  await driver.append([eventRow('b', LOG)]);
  expect(driver.stats.lasts).toBe(1);
  lose();
  await driver.append([eventRow('c', LOG)]);
  expect(driver.stats).toMatchObject({ lasts: 2, inserts: 3, clashes: 0, rows: 3 });
});

test('a step says so if a message came after its look and before the lease was given back', async () => {
  const data = newMemoryData();
  let beforeRelease: (() => Promise<unknown>) | null = null;
  const driverOf = (gate: DocumentGate) =>
    createDocumentDriver(createMemoryDocuments({ data, gate }), { random: () => 0.5, sleep: async () => {} });
  const other = driverOf(async (_, work) => work());
  let updates = 0;
  const driver = driverOf(async (op, work) => {
    if (op === 'actors.update' && (updates += 1) === 2) await beforeRelease?.();
    return work();
  });
  await driver.append([eventRow('m1', { to: ['worker'] })]);
  const acquired = await driver.acquire(KEY, { owner: 'one', now: 1, until: 1_000 });
  if (acquired.kind === 'busy') throw new Error('somebody has the lease');
  updates = 0;
  beforeRelease = () => other.append([eventRow('m2', { to: ['worker'] })]);
  const stepped = await driver.step(KEY, {
    expect: { fence: acquired.row.fence },
    change: { data: '{}', processed: 1 },
    events: [{ row: eventRow('said'), ifTaken: 'spare' }],
    rests: true,
  });
  expect(stepped).toMatchObject({ isAddressed: true, row: { owner: '', processed: 2 } });
  expect(await driver.head(LOG)).toBe(3);
});
