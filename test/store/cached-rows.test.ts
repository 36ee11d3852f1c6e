import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ActorKey, NewEventRow } from '../../src/store/driver.ts';
import { openSqliteDriver } from '../../src/store/sqlite/sqlite-driver.ts';
import { tempDir } from './temp-dir.ts';

const TENANT = 'acme';
const LEASE = { owner: 'o', now: 1, until: 0 };

function keyOf(agent: string, conversation = 'talk'): ActorKey {
  return { tenant: TENANT, conversation, agent };
}

function eventOf(id: string, change: Partial<NewEventRow> = {}): NewEventRow {
  const row = {
    tenant: TENANT,
    conversation: 'talk',
    id,
    at: 1,
    kind: 'message',
    to: [],
    hash: id,
    tokens: 1,
  };
  return { ...row, turn: null, data: '{}', ...change };
}

/** A value that cannot be stored, so that its batch is undone. */
const BAD = undefined as unknown as number;

const operation = fc.record({
  kind: fc.constantFrom('acquire', 'change', 'long', 'abort', 'park', 'append', 'fail'),
  agent: fc.constantFrom('a', 'b', 'c'),
  value: fc.integer({ min: 0, max: 9 }),
  waits: fc.boolean(),
});

test('a write sees and reports the file, whatever is undone in between', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { maxLength: 30 }), async (operations) => {
      const driver = await openSqliteDriver({ path: ':memory:' });
      const fences: Record<string, number> = { a: 0, b: 0, c: 0 };
      const pending: Promise<unknown>[] = [];
      let appended = 0;
      for (const [at, { kind, agent, value, waits }] of operations.entries()) {
        const key = keyOf(agent);
        const fence = fences[agent]!;
        const change =
          kind === 'long' ? { data: `${at}`.repeat(9_000) } : { processed: at, turn: `t${value}` };
        if (kind === 'acquire') {
          const wanted = (fences[agent] = fence + 1);
          const acquired = driver.acquire(key, LEASE);
          pending.push(acquired.then((outcome) => expect(outcome).toMatchObject({ row: { fence: wanted } })));
        } else if (kind === 'change' || kind === 'long') {
          const changed = driver.compareAndSet(key, { fence }, change);
          const wanted = fence > 0 ? expect.objectContaining({ fence, ...change }) : undefined;
          pending.push(changed.then((row) => wanted && expect(row).toEqual(wanted)));
        } else if (kind === 'abort') pending.push(driver.requestAbort(key, `t${value}`));
        else if (kind === 'park') pending.push(driver.park(key, value > 4 ? 'paused' : null));
        else if (kind === 'fail')
          pending.push(
            expect(driver.append([eventOf(`x${at}`), eventOf(`y${at}`, { at: BAD })])).rejects.toThrow(),
          );
        else {
          const seq = (appended += 1);
          pending.push(
            driver
              .append([eventOf(`e${at}`)])
              .then((all) => expect(all).toEqual([{ kind: 'appended', seq }])),
          );
        }
        if (waits) await Promise.all(pending);
      }
      await Promise.all(pending);
      expect(await driver.head(keyOf('a'))).toBe(appended);
      for (const row of await driver.listActors(keyOf('a'))) {
        expect(await driver.compareAndSet(row, { fence: row.fence }, {})).toEqual(row);
      }
      await driver.close();
    }),
    { numRuns: 300 },
  );
});

test('the next write sees the rows of another connection', async () => {
  const path = join(tempDir(), 'troupe.db');
  const one = await openSqliteDriver({ path });
  const two = await openSqliteDriver({ path });
  const seqs: unknown[] = [];
  for (let round = 0; round < 3; round += 1) {
    for (const driver of [one, two]) {
      const outcome = await driver.acquire(keyOf('a'), LEASE);
      expect(outcome).toMatchObject({ row: { fence: seqs.length + 1 } });
      seqs.push(...(await driver.append([eventOf(`e${seqs.length}`)])));
    }
  }
  expect(seqs).toEqual([1, 2, 3, 4, 5, 6].map((seq) => ({ kind: 'appended', seq })));
  expect(await one.compareAndSet(keyOf('a'), { fence: 5 }, { processed: 1 })).toBeNull();
  await one.close();
  await two.close();
});

test('more actors than the cache holds are written correctly', async () => {
  const driver = await openSqliteDriver({ path: ':memory:' });
  const names = Array.from({ length: 1_500 }, (_, index) => `agent-${index}`);
  await Promise.all(names.map((name) => driver.acquire(keyOf(name), LEASE)));
  const again = await Promise.all(names.map((name) => driver.acquire(keyOf(name), LEASE)));
  expect(new Set(again.map((each) => each.kind === 'acquired' && each.row.fence))).toEqual(new Set([2]));
  await driver.close();
});

test('an agent that no process serves delays no other in a sweep, and an actor counts once', async () => {
  const driver = await openSqliteDriver({ path: ':memory:' });
  const calls = Array.from({ length: 50 }, (_, index) =>
    eventOf('e', { conversation: `c${index}`, to: ['nobody'], at: index }),
  );
  for (const call of calls) await driver.append([call]);
  await driver.append([eventOf('late', { to: ['worker'], at: 1_000 })]);
  await driver.acquire(keyOf('worker'), LEASE);
  await driver.compareAndSet(keyOf('worker'), { fence: 1 }, { turn: 't' });
  await driver.append([eventOf('later', { to: ['boss'], at: 2_000 })]);
  const due = await driver.due({ now: 1, clock: 0, since: 0, limit: 3 });
  expect(due).toEqual([keyOf('worker'), keyOf('nobody', 'c0'), keyOf('boss')]);
  expect((await driver.due({ now: 1, clock: 0, since: 0, limit: 100 })).length).toBe(52);
  await driver.close();
});
